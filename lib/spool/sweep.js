'use strict';

// Runs where the spool runs. Removes spool directories: the spool's own, and those of killed primaries. It
// removes only files with the names of a spool's files, and a directory only once it is empty.

const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { SPOOL_PREFIX: PREFIX, workerIdOfFile } = require('./file-names');
const { OWNER_FILE, readOwner, isKnownToLive } = require('./owner');
const { isOurs, removeEntry, unlessMissing } = require('./safe-files');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

// Not fs.promises: a call of it aborts the whole process if its thread is terminated at that moment
// (Assertion failed: (req_wrap_async) != nullptr, seen with Node.js 20.20).
// Nor fs.realpath.native, which tracers that replace fs.realpath drop.
const realpath = promisify(fs.realpath);
const readdir = promisify(fs.readdir);
const lstat = promisify(fs.lstat);

/**
 * The name of a directory that is being removed: as long as that of a spool, because a path in it may already
 * be as long as the system allows.
 */
const REMOVED_NAME = new RegExp(`^${PREFIX}removed-[0-9a-f]{16}$`);

/** The directory that proper-lockfile creates. */
const LOCK = 'lock';

/** The retired totals. */
const RETIRED_FILE = 'retired.snap';

/** Names of entries that are not a worker's. */
const NAMES = new Set([LOCK, OWNER_FILE, `${OWNER_FILE}.tmp`, RETIRED_FILE, `${RETIRED_FILE}.tmp`]);

const SWEEP_AGE_MS = 10 * 60 * 1000;

/**
 * Whether a spool or its workers create an entry of this name. A link, a FIFO or an empty directory with such
 * a name counts as ours, too: removing it touches nothing else.
 *
 * @param {string} name
 * @returns {boolean}
 */
function isSpoolName(name) {
  return NAMES.has(name) || workerIdOfFile(name) !== undefined;
}

/**
 * Renames a directory before it is removed: a worker that has its name can no longer add a file, and only one
 * of two processes that remove the same directory succeeds. A later sweep recognises the new name if the
 * removal is interrupted.
 *
 * @param {string} directory
 * @returns {string} the new path
 */
function setAside(directory) {
  if (REMOVED_NAME.test(path.basename(directory))) return directory;
  const aside = path.join(path.dirname(directory), `${PREFIX}removed-${randomBytes(8).toString('hex')}`);
  fs.renameSync(directory, aside);
  return aside;
}

/**
 * Removes a spool directory. An entry that is not a spool's, or that cannot be removed, stays; the directory
 * then keeps its name and its owner file. Synchronous, so the end of the process cannot interrupt it.
 *
 * @param {string} directory
 * @returns {boolean} whether the directory itself was removed
 */
function removeDirectory(directory) {
  const isRemovable = fs.readdirSync(directory).every(isSpoolName);
  const place = isRemovable ? setAside(directory) : directory;
  if (removeEntries(place)) {
    unlessMissing(() => removeEntry(path.join(place, OWNER_FILE)));
    fs.rmdirSync(place);
    return true;
  }
  if (place !== directory) fs.renameSync(place, directory);
  return false;
}

/**
 * Removes all entries of a spool except the owner file: a directory without an owner file is never swept.
 *
 * @param {string} directory
 * @returns {boolean} whether nothing else is left
 */
function removeEntries(directory) {
  for (const name of fs.readdirSync(directory).filter(isSpoolName)) {
    const file = path.join(directory, name);
    try {
      if (name !== OWNER_FILE) removeEntry(file);
    } catch (error) {
      debug('cannot remove %s: %s', file, textOf(error));
    }
  }
  return fs.readdirSync(directory).every(name => name === OWNER_FILE);
}

/**
 * Removes the directories of killed primaries: those that belong to this user, have a spool's name and owner
 * file, and whose owner is dead. If nothing shows whether it is, they have not changed for ten minutes: live
 * primaries renew the lock or owner file.
 *
 * @param {string[]} places
 * @param {string} except our own directory
 * @param {() => number} now
 * @returns {Promise<string[]>} absolute paths of the removed directories
 */
async function sweep(places, except, now) {
  const removed = [];
  for (const directory of await candidatesIn(places)) {
    try {
      if (directory === except || !(await isAbandoned(directory, now() - SWEEP_AGE_MS))) continue;
      if (removeDirectory(directory)) removed.push(directory);
    } catch (error) {
      debug('cannot sweep %s: %s', directory, textOf(error));
    }
  }
  return removed;
}

/**
 * @param {string[]} places
 * @returns {Promise<string[]>} absolute paths with a spool's name
 */
async function candidatesIn(places) {
  const found = new Set();
  for (const place of places) {
    try {
      const parent = await realpath(place);
      for (const name of await readdir(parent)) {
        if (name.startsWith(PREFIX)) found.add(path.join(parent, name));
      }
    } catch (error) {
      debug('cannot sweep in %s: %s', place, textOf(error));
    }
  }
  return [...found];
}

/**
 * @param {string} directory
 * @param {number} since milliseconds since the epoch
 * @returns {Promise<boolean>}
 */
async function isAbandoned(directory, since) {
  if (!isOurs(await lstat(directory))) return false;
  const owner = readOwner(directory);
  // The name alone proves nothing: an unpacked archive of this package has such a name.
  if (owner === undefined && !REMOVED_NAME.test(path.basename(directory))) return false;
  const isAlive = isKnownToLive(owner);
  return isAlive === undefined ? !(await hasChanged(directory, since)) : !isAlive;
}

/**
 * Whether a directory or anything directly in it has changed since a given time. Does not follow links.
 *
 * @param {string} directory
 * @param {number} since milliseconds since the epoch
 * @returns {Promise<boolean>}
 */
async function hasChanged(directory, since) {
  for (const name of ['.', ...(await readdir(directory))]) {
    const { mtimeMs } = await lstat(path.join(directory, name));
    if (mtimeMs >= since) return true;
  }
  return false;
}

module.exports = { LOCK, RETIRED_FILE, sweep, removeDirectory };
