'use strict';

// What is sampled at a scrape, a quarter of a millisecond at a time.

const { loopTurn } = require('./loop-turn');
const { stopwatch } = require('../../metric/stopwatch');
const { timedSection } = require('../../event-loop/timed-section');

/** So long the samples of one turn may take together; each of them takes some hundredths of a millisecond. */
const MOST_SECONDS_A_TURN = 0.00025;

/** @type {(() => void)[]} */
const samples = [];

/**
 * Samples in one of the next turns of the event loop, after those that have been waiting for longer: all default metrics
 * together take a millisecond, at the first scrape of a process two.
 *
 * @param {() => void} sample
 * @returns {Promise<void>} rejected with what it throws
 */
function sampleLater(sample) {
  return new Promise((resolve, reject) => {
    samples.push(() => {
      try {
        resolve(sample());
      } catch (error) {
        reject(error);
      }
    });
    if (samples.length === 1) sampleInTurns();
  });
}

async function sampleInTurns() {
  while (samples.length > 0) {
    await loopTurn();
    timedSection('default-metrics:sample', sampleSome);
  }
}

function sampleSome() {
  const elapsed = stopwatch();
  do /** @type {() => void} */ (samples[0])();
  while (samples.shift() && samples.length > 0 && elapsed() < MOST_SECONDS_A_TURN);
}

module.exports = { sampleLater };
