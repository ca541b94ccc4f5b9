'use strict';

// Spreads the sampling of default metrics over several turns of the event loop.
//
// Without it, a worker of `npm run bench -- --only runtime-overhead` samples all default metrics in one
// section of 2.5 ms (P90), and of 6.3 ms at its first scrape; with it, 1.0 and 2.0 ms. A turn per sample
// would make sections a little shorter, but a scrape would take ten turns of a busy loop instead of three or
// four.

const { loopTurn } = require('./loop-turn');
const { runInSlices } = require('../../event-loop/slices');
const { timedSection } = require('../../event-loop/timed-section');

/** No further sample begins in a turn after this time. One sample takes up to some 0.3 ms. */
const MILLISECONDS_PER_TURN = 0.25;

/** @type {(() => void)[]} */
const queue = [];

/**
 * Calls a function in one of the next turns of the event loop, after those that were queued before it.
 *
 * @param {() => void} sample never throws
 * @returns {Promise<void>}
 */
function sampleLater(sample) {
  return new Promise(resolve => {
    queue.push(() => resolve(sample()));
    if (queue.length === 1) drainInTurns();
  });
}

async function drainInTurns() {
  await loopTurn();
  await runInSlices(samples(), MILLISECONDS_PER_TURN, slice => timedSection('default-metrics:sample', slice));
}

function* samples() {
  // A function leaves the queue after its turn: a queue of one is being drained.
  for (; queue.length > 0; queue.shift()) {
    queue[0]();
    yield;
  }
}

module.exports = { sampleLater };
