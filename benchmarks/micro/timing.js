'use strict';

// The clocks of the micro benchmarks. Runs in the measuring process.

const Benchmark = require('benchmark');
const { processorWait } = require('../shared/processor-wait.js');
const { median } = require('../shared/statistics.js');

// Cycles shorter than the scheduler's time slice are often not interrupted, so on a busy machine the median
// of many short cycles varies less than that of a few long ones.
const CYCLE_SECONDS = 0.01;

// Operations of milliseconds are called a few times before they count, because code is compiled while it
// runs.
const WARM_UPS = 2;
const FEWEST_CALLS = 3;
const MOST_CALLS = 200;

const SLOW = 1; // ms; a longer gap may include waiting for a CPU

/**
 * @typedef {object} Clock
 * @property {() => number} now milliseconds
 * @property {() => number} processorWait milliseconds for which the main thread has waited for a processor
 */

/** @type {Clock} */
const CLOCK = { now: () => performance.now(), processorWait };

/**
 * @typedef {object} Recording
 * @property {number} operations how many one call of `run` performs
 * @property {() => void} run
 * @property {() => number | Promise<number>} recorded the number of operations according to the library,
 *   or any number that rises by one with each
 */

/**
 * Times a small operation with the package `benchmark`, and checks that every operation was performed: if the
 * compiler had optimised work away, the library would have recorded less.
 *
 * @param {Recording} recording
 * @param {number} seconds to spend
 * @returns {Promise<number>} nanoseconds per operation, the median of all cycles
 * @throws {Error} if the library has another count
 */
async function nanosecondsPerOperation({ operations, run, recorded }, seconds) {
  const before = await recorded();
  let runs = 0;
  const benchmark = new Benchmark({
    minTime: CYCLE_SECONDS,
    maxTime: seconds,
    // A function without setup and teardown is called; otherwise it would be compiled again from its source.
    fn() {
      run();
      runs++;
    },
  });
  benchmark.run();
  if (benchmark.error) throw benchmark.error;
  const counted = (await recorded()) - before;
  if (counted !== runs * operations) {
    throw new Error(`${runs * operations} operations were timed, the library recorded ${counted}`);
  }
  return (median(benchmark.stats.sample) * 1e9) / operations;
}

/**
 * Times an operation of milliseconds, and the longest time for which it blocks the event loop. Calls for the
 * one and the other alternate, because the probe of the loop takes time itself.
 *
 * @param {() => any} call whose promise, if it returns one, is waited for
 * @param {{seconds: number, before?: () => any, clock?: Clock}} options duration, a function to call before
 *   each call, untimed, and another clock, for tests
 * @returns {Promise<{wall: number, gap: number}>} medians, milliseconds
 */
async function millisecondsPerCall(call, { seconds, before = () => {}, clock = CLOCK }) {
  const walls = [];
  const gaps = [];
  let until = Infinity;
  for (let turn = -WARM_UPS; walls.length < MOST_CALLS; turn++) {
    if (turn === 0) until = clock.now() + seconds * 1000;
    if (turn >= FEWEST_CALLS && clock.now() > until) break;
    await before();
    const wall = await wallTime(call, clock);
    await before();
    const gap = await longestGap(call, clock);
    if (turn < 0) continue;
    walls.push(wall);
    gaps.push(gap);
  }
  return { wall: median(walls), gap: median(gaps) };
}

/**
 * @param {() => any} call
 * @param {Clock} clock
 * @returns {Promise<number>} milliseconds
 */
async function wallTime(call, clock) {
  await nextTurn();
  const began = clock.now();
  await call();
  return clock.now() - began;
}

/**
 * @param {() => any} call
 * @param {Clock} clock
 * @returns {Promise<number>} the longest time between two turns of the event loop while it was under way,
 *   milliseconds, less the time for which the thread waited for a processor
 */
async function longestGap(call, { now: readTime, processorWait: readWait }) {
  await nextTurn();
  let longest = 0;
  let isOver = false;
  let waitedBefore = readWait();
  let last = readTime();
  setImmediate(function tick() {
    const now = readTime();
    let gap = now - last;
    if (gap > SLOW) {
      const waited = readWait();
      gap -= waited - waitedBefore;
      waitedBefore = waited;
    }
    longest = Math.max(longest, gap);
    last = now;
    if (!isOver) setImmediate(tick);
  });
  await call();
  // The next tick, which is queued before this, records what ran since the last one.
  await nextTurn();
  isOver = true;
  return longest;
}

/** @returns {Promise<void>} */
function nextTurn() {
  return new Promise(resolve => setImmediate(resolve));
}

module.exports = { nanosecondsPerOperation, millisecondsPerCall, nextTurn };
