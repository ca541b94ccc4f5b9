'use strict';

// A debug hook: how long each synchronous section of ours holds an event loop. Subscribers of the channel get
// {name, milliseconds}; without one it costs a property read.

const channel = require('node:diagnostics_channel').channel('prom-client-cluster:section');

/**
 * @template T
 * @param {string} name
 * @param {() => T} run
 * @returns {T}
 */
function timedSection(name, run) {
  if (!channel.hasSubscribers) return run();
  const start = performance.now();
  try {
    return run();
  } finally {
    channel.publish({ name, milliseconds: performance.now() - start });
  }
}

module.exports = { timedSection };
