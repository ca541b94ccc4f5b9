'use strict';

const { turn } = require('../../event-loop/slices');
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
  await turn();
  return elapsed();
}

module.exports = { loopTurn };
