'use strict';

// What Linux tells a process about itself: https://man7.org/linux/man-pages/man5/proc.5.html
//
// Read synchronously: these files are made in memory, in some 15 µs, while a reader in libuv's pool would stand in the
// queue of the application's own file and DNS work.

// Modules of Node.js go by their bare names in this directory: suites replace them by these.

const DIRECTORY = '/proc/self';

/**
 * @param {string} name of the file or directory
 * @returns {boolean} whether there is one. Asks without a file descriptor, so also where the process has none left.
 */
function isOnProcSelf(name) {
  if (process.platform !== 'linux') return false;
  return orUndefined(() => require('fs').statSync(`${DIRECTORY}/${name}`))() !== undefined;
}

/**
 * @param {string} name
 * @returns {string | undefined} undefined where it cannot be read (at the moment)
 */
function readProcSelf(name) {
  return orUndefined(() => require('fs').readFileSync(`${DIRECTORY}/${name}`, 'utf8'))();
}

/**
 * Finds out how open file descriptors are counted here. Since Linux 6.2 their number is the size of the directory,
 * told in 4 µs; to read the directory takes a millisecond per thousand descriptors.
 *
 * @returns {() => number | undefined} undefined where they cannot be counted (at the moment)
 */
function fileDescriptorCounter() {
  const fs = require('fs');
  const directory = `${DIRECTORY}/fd`;
  // Less the one that reading the directory takes.
  const listed = () => fs.readdirSync(directory).length - 1;
  const sized = () => fs.statSync(directory).size;
  const hasSize = orUndefined(() => sized() === listed())();
  return orUndefined(hasSize ? sized : listed);
}

/**
 * @template T
 * @param {() => T} read
 * @returns {() => T | undefined}
 */
function orUndefined(read) {
  return () => {
    try {
      return read();
    } catch {
      return undefined;
    }
  };
}

module.exports = { isOnProcSelf, readProcSelf, fileDescriptorCounter };
