'use strict';

// Taken when this file is loaded: a scrape that waits for somebody's fake timer would never end.
const { setImmediate } = require('node:timers');
const { stopwatch } = require('../../metric/stopwatch');

/**
 * Lets the event loop do what it has to do already.
 *
 * @returns {Promise<number>} how long that took, in seconds
 */
async function loopTurn() {
  // After the hooks of this scrape have run: an immediate of ours is no active resource of the application.
  await undefined;
  const elapsed = stopwatch();
  return new Promise(resolve => {
    setImmediate(() => resolve(elapsed()));
  });
}

module.exports = { loopTurn };
