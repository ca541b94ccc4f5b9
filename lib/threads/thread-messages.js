'use strict';

// The messages from a thread that has joined to the thread that serves the page, and their channels.
//
// A port cannot be passed to a thread whose Worker object belongs to the application, so BroadcastChannels
// are used, which connect all threads of a process by name. A thread that joins posts one message with all
// that it has to the inbox. The hub then listens on a channel for that thread and says so in shared memory;
// from then on the thread posts there. That takes 3 µs a message, where a short-lived channel to the inbox
// takes 200 µs. No message waits for an answer, because a thread may
// compute, or sleep in Atomics.wait, from its first turn on.

const { BroadcastChannel, getEnvironmentData } = require('node:worker_threads');

const PREFIX = 'prom-client-cluster.threads.v1';

/** Key of the environment data of a hub that is not in the main thread: its scope. */
const SCOPE = `${PREFIX}.scope`;

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

/**
 * Listens to a channel, without keeping the thread alive.
 *
 * @param {string} name
 * @param {(message: any) => void} onMessage
 * @returns {BroadcastChannel}
 */
function listen(name, onMessage) {
  const channel = new BroadcastChannel(name);
  channel.onmessage = (/** @type {any} */ event) => onMessage(event.data);
  /** @type {any} */ (channel).unref();
  return channel;
}

module.exports = {
  SCOPE,
  scopeOf,
  inboxOf,
  helloOf,
  channelOf,
  listen,
};
