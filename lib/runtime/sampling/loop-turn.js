'use strict';

// Bound when this file is loaded: a scrape that waits for a test's fake timer would never end.
const { setImmediate } = require('node:timers');
const { stopwatch } = require('../../metric/stopwatch');

/**
 * Waits until the event loop has run what is queued already.
 *
 * @returns {Promise<number>} how long that took, in seconds
 */
async function loopTurn() {
  // Waits for the hooks of this scrape first: they count active resources, and this immediate is not one of
  // the application's.
  await undefined;
  const elapsed = stopwatch();
  return new Promise(resolve => {
    setImmediate(() => resolve(elapsed()));
  });
}

module.exports = { loopTurn };
