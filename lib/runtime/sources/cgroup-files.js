'use strict';

// Reads the limits and the usage of the process's cgroup, in both of Linux's versions:
// https://docs.kernel.org/admin-guide/cgroup-v2.html
// https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
// https://docs.kernel.org/scheduler/sched-bwc.html
//
// Version 1 is still in the field with Node.js 20 and later: RHEL 8 and its rebuilds, which have support
// until 2029, mount it by default, and a gVisor sandbox shows it to the container even on a host with version
// 2 (https://github.com/google/gvisor/issues/13007, open in 2026). systemd 258 (2025) cannot mount it any
// more, so this half can go with these systems.
//
// Reads are synchronous and modules are required at the call for the reasons that proc-self.js gives.

/**
 * Where the files are. Tests have their own.
 *
 * @typedef {object} Places
 * @property {string} root of the mounted hierarchies
 * @property {string} membership the file that names the process's cgroups
 */

/** @type {Places} */
const PLACES = { root: '/sys/fs/cgroup', membership: '/proc/self/cgroup' };

/** Version 1 writes "no limit" as the largest number of bytes in whole pages. */
const NO_LIMIT = 2 ** 60;

const MICROSECONDS = 1e6;
const NANOSECONDS = 1e9;

/**
 * @typedef {object} MemoryFiles
 * @property {() => number | undefined} limit in bytes; undefined if there is none at the moment
 * @property {() => number | undefined} usage in bytes
 */

/**
 * @typedef {object} CpuFiles
 * @property {() => number | undefined} quota in cores; undefined if there is none at the moment
 * @property {() => Throttling | undefined} throttling
 */

/**
 * @typedef {{seconds: number, periods: number, throttledPeriods: number}} Throttling since the cgroup was
 *   created
 */

/**
 * Finds the cgroup that limits the process's memory.
 *
 * @param {Places} [places]
 * @returns {MemoryFiles | undefined} undefined if there is no cgroup
 */
function findMemoryFiles(places = PLACES) {
  const hierarchy = hierarchyOf('memory', places);
  if (hierarchy === undefined) return undefined;
  const [max, current] =
    hierarchy.version === 1
      ? ['memory.limit_in_bytes', 'memory.usage_in_bytes']
      : ['memory.max', 'memory.current'];
  const limitIn = (/** @type {string} */ directory) => {
    const limit = numberIn(`${directory}/${max}`);
    return limit !== undefined && limit < NO_LIMIT ? limit : undefined;
  };
  const directory = tightest(hierarchy.directories, limitIn);
  const files = { limit: () => limitIn(directory), usage: () => numberIn(`${directory}/${current}`) };
  return files.usage() === undefined ? undefined : files;
}

/**
 * Finds the cgroup that limits the process's CPU time.
 *
 * @param {Places} [places]
 * @returns {CpuFiles | undefined} undefined if there is no cgroup
 */
function findCpuFiles(places = PLACES) {
  const hierarchy = hierarchyOf('cpu', places);
  if (hierarchy === undefined) return undefined;
  const quotaIn = hierarchy.version === 1 ? quotaOfVersion1 : quotaOfVersion2;
  const directory = tightest(hierarchy.directories, quotaIn);
  const files = { quota: () => quotaIn(directory), throttling: () => throttlingIn(directory) };
  return files.throttling() === undefined ? undefined : files;
}

/** @param {string} directory */
function quotaOfVersion1(directory) {
  const quota = numberIn(`${directory}/cpu.cfs_quota_us`);
  const period = numberIn(`${directory}/cpu.cfs_period_us`);
  return quota !== undefined && period !== undefined && quota > 0 ? quota / period : undefined;
}

/** @param {string} directory */
function quotaOfVersion2(directory) {
  const [quota, period] = (readText(`${directory}/cpu.max`) ?? 'max').split(' ').map(Number);
  return quota > 0 ? quota / period : undefined;
}

/**
 * @param {string} directory
 * @returns {Throttling | undefined}
 */
function throttlingIn(directory) {
  const stat = readText(`${directory}/cpu.stat`) ?? '';
  const [, periods] = /^nr_periods (\d+)$/m.exec(stat) ?? [];
  const [, throttledPeriods] = /^nr_throttled (\d+)$/m.exec(stat) ?? [];
  const [, unit, time] = /^throttled_(usec|time) (\d+)$/m.exec(stat) ?? [];
  if (periods === undefined || throttledPeriods === undefined || time === undefined) return undefined;
  return {
    periods: Number(periods),
    throttledPeriods: Number(throttledPeriods),
    seconds: Number(time) / (unit === 'usec' ? MICROSECONDS : NANOSECONDS),
  };
}

/**
 * The directory of the process's cgroup, followed by those of its ancestors.
 *
 * @param {string} controller
 * @param {Places} places
 * @returns {{version: 1 | 2, directories: string[]} | undefined}
 */
function hierarchyOf(controller, { root, membership }) {
  const lines = (readText(membership) ?? '').split('\n').map(line => /^\d+:([^:]*):(.*)$/.exec(line));
  for (const match of lines) {
    if (match === null || !match[1].split(',').includes(controller)) continue;
    const mount = [`${root}/${match[1]}`, `${root}/${controller}`].find(isThere);
    return mount === undefined ? undefined : { version: 1, directories: levels(mount, match[2]) };
  }
  const unified = lines.find(match => match !== null && match[1] === '');
  if (unified == null || !isThere(`${root}/cgroup.controllers`)) return undefined;
  return { version: 2, directories: levels(root, unified[2]) };
}

/**
 * @param {string} mount
 * @param {string} group the cgroup's path
 */
function levels(mount, group) {
  // A container may see its path on the host although only its own directory is mounted.
  const parts = group.split('/').filter(part => part !== '');
  if (parts.includes('..') || !isThere([mount, ...parts].join('/'))) return [mount];
  return [...parts, ''].map((_, depth) => [mount, ...parts.slice(0, parts.length - depth)].join('/'));
}

/**
 * @param {string[]} directories
 * @param {(directory: string) => number | undefined} limitIn
 * @returns {string} the one with the smallest limit, which is the one that takes effect; the first if none
 *   has one
 */
function tightest(directories, limitIn) {
  let [found] = directories;
  let smallest = Infinity;
  for (const directory of directories) {
    const limit = limitIn(directory);
    if (limit !== undefined && limit < smallest) [found, smallest] = [directory, limit];
  }
  return found;
}

/**
 * @param {string} path
 * @returns {number | undefined} undefined if the file does not hold a number
 */
function numberIn(path) {
  const text = readText(path)?.trim();
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : undefined;
}

/**
 * @param {string} path
 * @returns {string | undefined} undefined if it cannot be read at the moment
 */
function readText(path) {
  try {
    return require('fs').readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** @param {string} path */
function isThere(path) {
  return require('fs').existsSync(path);
}

module.exports = { findMemoryFiles, findCpuFiles };
