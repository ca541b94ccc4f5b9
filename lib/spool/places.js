'use strict';

// Runs where the spool runs. Finds a place for a spool's directory, and creates the directory.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { spoolName } = require('./file-names');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

/**
 * @param {string | undefined} directory tried first
 * @param {string[]} [others]
 * @returns {string[]} absolute paths
 */
function placesFor(directory, others = usualPlaces()) {
  return [...new Set([directory ?? [], others].flat().map(place => path.resolve(place)))];
}

/** @returns {string[]} */
function usualPlaces() {
  return fs.existsSync('/dev/shm') ? [os.tmpdir(), '/dev/shm'] : [os.tmpdir()];
}

/**
 * @template T
 * @param {string[]} places
 * @param {(place: string) => T} create
 * @returns {T} the result for the first place for which `create` does not throw
 * @throws {Error} with the reason for each place, if it throws for all of them
 */
function inFirstPlace(places, create) {
  const reasons = [];
  for (const place of places) {
    try {
      return create(place);
    } catch (error) {
      debug('no spool in %s: %s', place, textOf(error));
      reasons.push(textOf(error));
    }
  }
  throw new Error(`No directory for snapshot files can be written: ${reasons.join('; ')}`);
}

/**
 * @param {string} place
 * @param {boolean} inThread
 * @returns {string} absolute path of a new directory
 */
function makeDirectory(place, inThread) {
  const name = spoolName();
  const tmpdir = fs.realpathSync(place);
  const directory = path.join(tmpdir, name);
  // Not on a main thread: loading `tmp` adds an 'exit' listener to `process`, the application's there.
  if (inThread) require('tmp').dirSync({ tmpdir, name, mode: 0o700, keep: true });
  else fs.mkdirSync(directory, { mode: 0o700 });
  // Whatever the umask is: a directory that this process may not use stays behind.
  fs.chmodSync(directory, 0o700);
  return directory;
}

module.exports = { placesFor, inFirstPlace, makeDirectory };
