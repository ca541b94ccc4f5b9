'use strict';

// Runs where the spool runs. Removes spool directories: the spool's own, and those of killed primaries. It
// removes only files with the names of a spool's files, and a directory only once it is empty.

const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { spoolName, isSpoolDirectoryName, partsOf } = require('./file-names');
const { isOurs, removeEntry } = require('./safe-files');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

// Not fs.promises: a call of it aborts the whole process if its thread is terminated at that moment
// (Assertion failed: (req_wrap_async) != nullptr, seen with Node.js 20.20).
const readdir = promisify(fs.readdir);
const lstat = promisify(fs.lstat);

/** A directory that a live primary renews: by proper-lockfile, or by a timer on a main thread. */
const LOCK = 'lock';

/** The retired totals. */
const RETIRED_FILE = 'retired.snap';

/** Names of entries that are not a worker's. */
const NAMES = new Set([LOCK, RETIRED_FILE, `${RETIRED_FILE}.tmp`]);

// A live primary renews its lock six times in this time. One that was stopped for longer, and whose directory
// was removed meanwhile, creates another one.
const SWEEP_AGE_MS = 60_000;

/**
 * Whether a spool or its workers create an entry of this name. A link, a FIFO or an empty directory with such
 * a name counts as ours, too: removing it touches nothing else.
 *
 * @param {string} name
 * @returns {boolean}
 */
function isSpoolName(name) {
  return NAMES.has(name) || partsOf(name) !== undefined;
}

/**
 * Removes a spool directory. If it contains an entry that is not a spool's, only the spool's entries are
 * removed. Synchronous, so the end of the process cannot interrupt it.
 *
 * @param {string} directory
 * @throws {Error} if an entry cannot be removed: a later sweep tries again
 */
function removeDirectory(directory) {
  const names = fs.readdirSync(directory);
  if (!names.every(isSpoolName)) {
    removeEntries(directory, names.filter(isSpoolName));
    return;
  }
  // Renamed first: a worker that has its name can no longer add a file, and only one of two processes that
  // remove the same directory succeeds.
  const aside = path.join(path.dirname(directory), spoolName());
  fs.renameSync(directory, aside);
  removeEntries(aside, names);
  try {
    fs.rmdirSync(aside);
  } catch (error) {
    fs.renameSync(aside, directory);
    throw error;
  }
}

/**
 * @param {string} directory
 * @param {string[]} names
 */
function removeEntries(directory, names) {
  for (const name of names) {
    try {
      removeEntry(path.join(directory, name));
    } catch (error) {
      debug('cannot remove %s in %s: %s', name, directory, textOf(error));
    }
  }
}

/**
 * Removes the directories of killed primaries: those that belong to this user, have a spool's name, and have
 * not changed for a minute. Never rejects.
 *
 * @param {string[]} places
 * @param {string} except our own directory
 */
async function sweep(places, except) {
  for (const place of places) {
    try {
      // All 24 digits: an unpacked archive of this package has a name that begins like that.
      const names = (await readdir(place)).filter(isSpoolDirectoryName);
      for (const name of names)
        if (name !== path.basename(except)) await removeIfAbandoned(path.join(place, name));
    } catch (error) {
      debug('cannot sweep in %s: %s', place, textOf(error));
    }
  }
}

/** @param {string} directory */
async function removeIfAbandoned(directory) {
  try {
    if (await isAbandoned(directory)) removeDirectory(directory);
  } catch (error) {
    debug('cannot sweep %s: %s', directory, textOf(error));
  }
}

/**
 * Whether a directory is this user's, and neither it nor anything directly in it has changed for a minute.
 * Does not follow links.
 *
 * @param {string} directory
 * @returns {Promise<boolean>}
 */
async function isAbandoned(directory) {
  if (!isOurs(await lstat(directory))) return false;
  const since = Date.now() - SWEEP_AGE_MS;
  for (const name of ['.', ...(await readdir(directory))]) {
    const { mtimeMs } = await lstat(path.join(directory, name));
    if (mtimeMs >= since) return false;
  }
  return true;
}

module.exports = { LOCK, RETIRED_FILE, sweep, removeDirectory };
