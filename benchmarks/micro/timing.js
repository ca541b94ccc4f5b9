'use strict';

// The clocks of the micro benchmarks, run in the process that measures.

const Benchmark = require('benchmark');
const { processorWait } = require('../shared/processor-wait.js');
const { median } = require('../shared/statistics.js');

// A cycle that is shorter than the scheduler's slices is often not interrupted at all, so that the median of
// many short ones moves less on a busy machine than that of a few long ones.
const CYCLE_SECONDS = 0.01;

// What takes milliseconds is called a few times before it counts: it is compiled while it runs.
const WARM_UPS = 2;
const FEWEST_CALLS = 3;
const MOST_CALLS = 200;

const SLOW = 1; // ms; a gap that is longer may have waited for a processor

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
 * @property {() => number | Promise<number>} recorded what the library says of how many operations there
 *   were; or any number that rises by one with each
 */

/**
 * Times a small operation with the package `benchmark`, and makes sure that every single one was performed:
 * work that an optimising compiler left out would be missing from what the library has recorded.
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
    // Given as a function without setup and teardown, it is called, and not compiled again from its source.
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
 * Times something that takes milliseconds, and the longest time for which it holds the event loop: in calls
 * that take turns, as the probe of the loop costs time as well.
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
