'use strict';

// Runs with the aggregator, and in the primary for removal. A worker of another user than the primary's
// cannot write into the spool. For its exit snapshot it creates a directory of its own, with mode 0700, and
// announces it. Whatever it announces, only a directory of that worker's user in the temporary directory is
// read, and only the two names that this primary has given to the worker are read or removed.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { OWN_EXIT_PREFIX, unfinishedName } = require('../wire/file-names');
const { readSnapshot, unlessMissing, ifReadable } = require('./safe-files');
const { debug } = require('../../options/debug-log');
const { textOf } = require('../../options/thrown');

/**
 * @typedef {object} ExitDirectory
 * @property {string} directory that the worker has announced
 * @property {string} name of the exit snapshot
 * @property {number} [uid] of the worker; without it the directory is not used
 */

/**
 * @param {ExitDirectory} exit
 * @returns {{file: string, read: () => Buffer | undefined}[]} files that the worker may have written
 */
function exitFilesIn(exit) {
  if (!isTrusted(exit)) return [];
  return namesIn(exit).map(file => {
    return { file: path.basename(file), read: () => unlessMissing(() => readSnapshot(file)) };
  });
}

/**
 * Never throws.
 *
 * @param {ExitDirectory} exit
 */
function removeExitDirectory(exit) {
  try {
    if (!isTrusted(exit)) return;
    for (const file of namesIn(exit)) unlessMissing(() => fs.unlinkSync(file));
    fs.rmdirSync(exit.directory);
  } catch (error) {
    debug('cannot remove %s: %s', exit.directory, textOf(error));
  }
}

/** @param {ExitDirectory} exit */
function namesIn({ directory, name }) {
  return [unfinishedName(name), name].map(file => path.join(directory, file));
}

/**
 * @param {ExitDirectory} exit
 * @returns {boolean}
 */
function isTrusted({ directory, uid }) {
  const isPlace = path.basename(directory).startsWith(OWN_EXIT_PREFIX);
  if (!isPlace || path.dirname(directory) !== ifReadable(() => fs.realpathSync(os.tmpdir()))) return false;
  const stat = ifReadable(() => fs.lstatSync(directory));
  if (stat === undefined || !stat.isDirectory()) return false;
  return (stat.mode & 0o077) === 0 && stat.uid === uid;
}

module.exports = { exitFilesIn, removeExitDirectory };
