'use strict';

// Measures what a process does while nothing happens: the members of a group, and the same processes without
// one. They are neither scraped nor asked anything.

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { Tree } = require('./tree.js');

/**
 * @typedef {object} IdleScenario
 * @property {string[]} clients
 * @property {number} samples of each process
 * @property {number} workers processes of each kind
 * @property {'integers' | 'floats'} kind
 * @property {number} settle seconds before the measurement
 * @property {number} seconds of the measurement
 */

/**
 * Shares of a CPU, all threads of a process, in percent.
 *
 * @typedef {object} IdleResult
 * @property {number[]} group of each member
 * @property {number[]} alone of each other process
 */

/**
 * @param {IdleScenario} scenario
 * @returns {Promise<IdleResult>}
 */
async function runIdleScenario({ clients: [client], samples, workers, kind, settle, seconds }) {
  const settings = { client, samples, workers, kind };
  const trees = [
    await Tree.start({ ...settings, group: true }),
    await Tree.start({ ...settings, alone: true }),
  ];
  try {
    // Otherwise V8 collects garbage at some time in the next seconds, because nothing else happens.
    for (const tree of trees) await tree.call('collectGarbage');
    await sleep(settle * 1000);
    const pids = await Promise.all(trees.map(tree => tree.call('pids')));
    await sleep(1000);
    const before = pids.map(each => each.map(cpuOf));
    const began = performance.now();
    await sleep(seconds * 1000);
    const after = pids.map(each => each.map(cpuOf));
    const elapsed = performance.now() - began;
    const [group, alone] = after.map((cpus, i) =>
      cpus.map((cpu, j) => ((cpu - before[i][j]) / elapsed) * 100),
    );
    return { group, alone };
  } finally {
    await Promise.all(trees.map(tree => tree.stop()));
  }
}

/**
 * @param {number} pid
 * @returns {number} milliseconds of CPU time of all threads that have not ended
 */
function cpuOf(pid) {
  const task = `/proc/${pid}/task`;
  const times = fs.readdirSync(task).map(thread => fs.readFileSync(`${task}/${thread}/schedstat`, 'utf8'));
  return times.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e6, 0);
}

module.exports = { runIdleScenario };
