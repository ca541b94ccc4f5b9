'use strict';

const fs = require('node:fs');

/**
 * What processes have used of CPUs, all threads together. /proc/pid/stat has ticks of 10 ms, which in a window of
 * seconds are more than what is looked for here; the scheduler's account is exact as long as the threads sleep when it
 * is read.
 *
 * @param {number[]} pids
 * @returns {Map<string, number>} milliseconds, by thread
 */
function threadTimes(pids) {
  const times = new Map();
  for (const pid of pids) {
    for (const thread of fs.readdirSync(`/proc/${pid}/task`)) {
      const file = `/proc/${pid}/task/${thread}/schedstat`;
      const [nanoseconds] = fs.readFileSync(file, 'utf8').split(' ');
      times.set(thread, Number(nanoseconds) / 1e6);
    }
  }
  return times;
}

/**
 * @param {Map<string, number>} before
 * @param {Map<string, number>} after
 * @returns {number} milliseconds that the threads of `after` have used meanwhile
 * @throws {Error} where a thread has ended: what it used is not known
 */
function usedBetween(before, after) {
  let used = 0;
  for (const [thread, time] of after) used += time - (before.get(thread) ?? 0);
  for (const thread of before.keys()) {
    if (!after.has(thread)) throw new Error(`thread ${thread} has ended while it was measured`);
  }
  return used;
}

module.exports = { threadTimes, usedBetween };
