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

const { isThere, readText } = require('./proc-self');

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
 * What a controller's files in a directory have. NaN: it is not there, or has no number.
 *
 * @typedef {object} Files
 * @property {(directory: string) => number} limitIn in bytes, or in cores
 * @property {(directory: string) => number[]} usageIn bytes; or since the cgroup was created, the seconds
 *   that it was throttled, its periods and those that were throttled
 */

/** @type {Record<'memory' | 'cpu', Record<1 | 2, Files>>} by version */
const FILES = {
  memory: {
    1: {
      limitIn: directory => memoryLimit(numberIn(`${directory}/memory.limit_in_bytes`)),
      usageIn: directory => [numberIn(`${directory}/memory.usage_in_bytes`)],
    },
    2: {
      limitIn: directory => memoryLimit(numberIn(`${directory}/memory.max`)),
      usageIn: directory => [numberIn(`${directory}/memory.current`)],
    },
  },
  cpu: {
    1: {
      limitIn: directory =>
        cores(numberIn(`${directory}/cpu.cfs_quota_us`), numberIn(`${directory}/cpu.cfs_period_us`)),
      usageIn: directory => throttlingIn(directory, 'throttled_time', NANOSECONDS),
    },
    2: {
      limitIn: directory => {
        const [quota, period] = readText(`${directory}/cpu.max`).split(' ').map(Number);
        return cores(quota, period);
      },
      usageIn: directory => throttlingIn(directory, 'throttled_usec', MICROSECONDS),
    },
  },
};

/**
 * Finds the cgroup that limits the process's memory or CPU time.
 *
 * @param {'memory' | 'cpu'} controller
 * @param {Places} [places]
 * @returns {(() => number[]) | undefined} reads its limit and usage, see Files; undefined if there is no
 *   cgroup
 */
function cgroupReader(controller, places = PLACES) {
  const { version, directories } = hierarchyOf(controller, places);
  const { limitIn, usageIn } = FILES[controller][version];
  // The smallest limit of its ancestors is the one that takes effect.
  let [directory] = directories;
  let smallest = Infinity;
  for (const each of directories) {
    const limit = limitIn(each);
    if (limit < smallest) [directory, smallest] = [each, limit];
  }
  if (directory === undefined || usageIn(directory).includes(NaN)) return undefined;
  return () => [limitIn(directory), ...usageIn(directory)];
}

/** @param {number} bytes */
function memoryLimit(bytes) {
  return bytes < NO_LIMIT ? bytes : NaN;
}

/**
 * @param {number} quota
 * @param {number} period
 */
function cores(quota, period) {
  return quota > 0 ? quota / period : NaN;
}

/**
 * @param {string} directory
 * @param {string} name of the time in cpu.stat
 * @param {number} unit how many of it a second has
 * @returns {number[]}
 */
function throttlingIn(directory, name, unit) {
  const stat = readText(`${directory}/cpu.stat`);
  const [time, periods, throttled] = [name, 'nr_periods', 'nr_throttled'].map(field =>
    Number(new RegExp(`^${field} (\\d+)$`, 'm').exec(stat)?.[1]),
  );
  return [time / unit, periods, throttled];
}

/**
 * @param {string} controller
 * @param {Places} places
 * @returns {{version: 1 | 2, directories: string[]}} the directory of the process's cgroup, followed by those
 *   of its ancestors; none if there is no cgroup
 */
function hierarchyOf(controller, { root, membership }) {
  const groups = Array.from(readText(membership).matchAll(/^\d+:([^:]*):(.*)$/gm));
  const own = groups.find(([, controllers]) => controllers.split(',').includes(controller));
  if (own !== undefined) {
    const [, controllers, group] = own;
    const mount = [`${root}/${controllers}`, `${root}/${controller}`].find(isThere);
    return { version: 1, directories: mount === undefined ? [] : levels(mount, group) };
  }
  const unified = groups.find(([, controllers]) => controllers === '');
  const isMounted = unified !== undefined && isThere(`${root}/cgroup.controllers`);
  return { version: 2, directories: isMounted ? levels(root, unified[2]) : [] };
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

/** @param {string} path */
function numberIn(path) {
  return Number(readText(path).trim() || NaN);
}

module.exports = { cgroupReader };
