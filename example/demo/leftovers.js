'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const DIRECTORY_PREFIX = 'prom-client-cluster-';

/**
 * @returns {string[]} the directories of snapshot files that there are, of whatever process
 */
function snapshotDirectories() {
  const places = [os.tmpdir(), '/dev/shm'].filter(place => fs.existsSync(place));
  return places.flatMap(place =>
    fs
      .readdirSync(place)
      .filter(name => name.startsWith(DIRECTORY_PREFIX))
      .map(name => path.join(place, name)),
  );
}

/**
 * Processes and directories that a run has left behind.
 *
 * @param {object} run
 * @param {number[]} run.pids every process it started
 * @param {string[]} run.directoriesBefore the {@link snapshotDirectories} when it started
 * @returns {string[]} a description of each
 */
function leftovers({ pids, directoriesBefore }) {
  const directories = snapshotDirectories().filter(
    directory => !directoriesBefore.includes(directory) && !isOfOthers(directory, pids),
  );
  return [
    ...pids.filter(isAlive).map(pid => `process ${pid} still runs`),
    ...directories.map(directory => `directory ${directory} is still there`),
  ];
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Another cluster may have started since; its directory names its owner. */
function isOfOthers(directory, pids) {
  try {
    const owner = JSON.parse(fs.readFileSync(path.join(directory, 'owner.json'), 'utf8'));
    return !pids.includes(owner.pid);
  } catch {
    return !fs.existsSync(directory);
  }
}

module.exports = { snapshotDirectories, leftovers };
