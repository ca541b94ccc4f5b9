'use strict';

// A debug hook: how long each synchronous section of ours holds an event loop. Subscribers of the channel get
// {name, milliseconds} at its end; those of the other one {name} at its beginning, to take readings of their own.
// Without any it costs a property read.

const { channel } = require('node:diagnostics_channel');

const ended = channel('prom-client-cluster:section');
const begun = channel('prom-client-cluster:section-begin');

/**
 * @template T
 * @param {string} name
 * @param {() => T} run
 * @returns {T}
 */
function timedSection(name, run) {
  if (!ended.hasSubscribers) return run();
  begun.publish({ name });
  const start = performance.now();
  try {
    return run();
  } finally {
    ended.publish({ name, milliseconds: performance.now() - start });
  }
}

module.exports = { timedSection };
