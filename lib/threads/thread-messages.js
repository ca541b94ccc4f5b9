'use strict';

// What crosses from a thread that takes part to the thread that serves the page, and the channels for it.
//
// A port cannot be passed to a thread whose Worker object belongs to the application, so BroadcastChannels
// are used, which connect all threads of a process by name. A thread that joins posts to the inbox. The hub
// then listens on a channel of that thread, says so in shared memory, and the thread posts there: that takes
// 3 µs a message, and a short-lived channel to the inbox 200 µs. The thread is shown when it has
// published all that it had. No message waits for an answer, because a thread may compute, or sleep in
// Atomics.wait, from its first turn on.

const { getEnvironmentData } = require('node:worker_threads');

const PREFIX = 'prom-client-cluster.threads.v1';

/** Key of the environment data of a hub that is not in the main thread: its scope. */
const SCOPE = `${PREFIX}.scope`;

/** Of the shared memory of a thread in which the hub says that it listens on its channel: one integer. */
const LISTENER_BYTES = 4;

/**
 * Kinds of records in the log. The integers of most begin with the number of a metric; what has other types
 * is the record's text, as JSON.
 */
const REGISTRY = 1; // number; its default labels as text
const DEFINE = 2; // metric, registry; its definition as text
const CUSTOM = 3; // metric, registry; its name as text
const DROP = 4; // metric
const PAGE = 5; // metric, number of the page, number of the memory, byte offset, length
const FORM = 6; // metric, positions of the labels in their order
const VALUE = 7; // metric, position of the label; the next value of that label as text
const ROW = 8; // metric, row, form, number of its value of each label; the one that is new as text
const ORDER = 9; // metric, all live rows
const REMOVE = 10; // metric, row
const CLEAR = 11; // metric
const OVERFLOW = 12; // metric, number of the memory of its count, byte offset
const DIGESTS = 13; // metric, number of the memory: the next block of its digests
const DIGEST = 14; // metric, row, slice, number of its block, offset and lengths of its place, in float64
const EXEMPLAR = 15; // metric, row, column; labels, value and timestamp as text; or metric, row: dropped
const HOOK = 16; // metric: it has a hook

/** @returns {string} the scope of this thread: threads see the hub that was created above them */
function scopeOf() {
  const scope = getEnvironmentData(SCOPE);
  return typeof scope === 'string' ? scope : '';
}

/** @param {string} scope */
function inboxOf(scope) {
  return `${PREFIX}.inbox.${scope}`;
}

/** @param {string} scope */
function helloOf(scope) {
  return `${PREFIX}.hello.${scope}`;
}

/** @param {string} id of a thread */
function channelOf(id) {
  return `${PREFIX}.thread.${id}`;
}

module.exports = {
  SCOPE,
  LISTENER_BYTES,
  REGISTRY,
  DEFINE,
  CUSTOM,
  DROP,
  PAGE,
  FORM,
  VALUE,
  ROW,
  ORDER,
  REMOVE,
  CLEAR,
  OVERFLOW,
  DIGESTS,
  DIGEST,
  EXEMPLAR,
  HOOK,
  scopeOf,
  inboxOf,
  helloOf,
  channelOf,
};
