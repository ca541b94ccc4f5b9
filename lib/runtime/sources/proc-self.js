'use strict';

// Reads what Linux says about the process: https://man7.org/linux/man-pages/man5/proc.5.html
//
// Reads are synchronous. The kernel makes these files in memory, in some 15 µs; an asynchronous read would
// wait behind the application's own file and DNS work in libuv's thread pool.
//
// Node's modules are required by their bare names and at the call, because users' tests mock them by these
// names.

const DIRECTORY = '/proc/self';

/**
 * @param {string} name of the file or directory
 * @returns {boolean} whether it exists. Needs no file descriptor, so it works when the process has none left.
 */
function isOnProcSelf(name) {
  return process.platform === 'linux' && isThere(`${DIRECTORY}/${name}`);
}

/** @param {string} path */
function isThere(path) {
  try {
    return require('fs').existsSync(path);
  } catch {
    // Deno, without the permission to read it.
    return false;
  }
}

/**
 * @param {string} path
 * @returns {string} empty if it cannot be read at the moment
 */
function readText(path) {
  try {
    return require('fs').readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/**
 * @param {string} name
 * @returns {string} empty if it cannot be read at the moment
 */
function readProcSelf(name) {
  return readText(`${DIRECTORY}/${name}`);
}

/**
 * Chooses how to count open file descriptors. Since Linux 6.2 the size of the directory is their number,
 * which takes 4 µs to read; listing the directory takes a millisecond per thousand descriptors.
 *
 * @returns {() => number} throws if they cannot be counted at the moment
 */
function fileDescriptorCounter() {
  const fs = require('fs');
  const directory = `${DIRECTORY}/fd`;
  // Minus the descriptor that reads the directory.
  const listed = () => fs.readdirSync(directory).length - 1;
  const sized = () => fs.statSync(directory).size;
  /** @type {(() => number) | undefined} */
  let count;
  return () => (count ??= sized() === listed() ? sized : listed)();
}

module.exports = { isOnProcSelf, isThere, readText, readProcSelf, fileDescriptorCounter };
