'use strict';

const fs = require('node:fs');

/**
 * CPU time of processes, by thread. /proc/pid/stat counts ticks of 10 ms, which is too coarse here; schedstat
 * is exact while the threads sleep.
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
 * @returns {number} milliseconds that the threads used in between
 * @throws {Error} if a thread has ended: its CPU time is lost
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
