'use strict';

// Measures what a process does while nothing happens: the members of a group, and the same processes without
// one. They are neither scraped nor asked anything.

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { median } = require('../shared/statistics.js');
const { Tree } = require('./tree.js');

// The median of these. Once or twice in its first minutes, any idle process collects garbage or compiles.
const WINDOWS = 8;

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
 * Shares of a CPU, all threads of a process, in percent: medians of several windows.
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
    const windows = [];
    for (let i = 0; i < WINDOWS; i++) windows.push(await window(pids.flat(), (seconds * 1000) / WINDOWS));
    const shares = pids.flat().map((_, place) => median(windows.map(each => each[place])));
    const group = shares.slice(0, pids[0].length);
    const alone = shares.slice(pids[0].length);
    return { group, alone };
  } finally {
    await Promise.all(trees.map(tree => tree.stop()));
  }
}

/**
 * @param {number[]} pids
 * @param {number} milliseconds
 * @returns {Promise<number[]>} share of a CPU of each, in percent
 */
async function window(pids, milliseconds) {
  const before = pids.map(cpuOf);
  const began = performance.now();
  await sleep(milliseconds);
  const elapsed = performance.now() - began;
  return pids.map((pid, place) => ((cpuOf(pid) - before[place]) / elapsed) * 100);
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
