'use strict';

// Reports how long each synchronous section of this library occupies an event loop, for debugging.
// Subscribers of the diagnostics channel get {name, milliseconds} when a section ends. Without a subscriber
// it costs one property read.

const { channel } = require('node:diagnostics_channel');

const sections = channel('prom-client-cluster:section');

/**
 * @template T
 * @param {string} name
 * @param {() => T} run
 * @returns {T}
 */
function timedSection(name, run) {
  if (!sections.hasSubscribers) return run();
  const start = performance.now();
  try {
    return run();
  } finally {
    sections.publish({ name, milliseconds: performance.now() - start });
  }
}

module.exports = { timedSection };
