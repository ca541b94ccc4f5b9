'use strict';

// Removes the directories that killed primaries have left.

const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { debuglog } = require('node:util');
const { readOwner, isKnownToLive } = require('./owner');
const { isOurs, messageOf } = require('./safe-files');

const debug = debuglog('prom-client-cluster');

/** How the name of each spool directory begins. */
const PREFIX = 'prom-client-cluster-';

const SWEEP_AGE_MS = 10 * 60 * 1000;

/**
 * Renames before removing: nobody can put another file in under the name they know, and of two that remove the same
 * directory only one gets it. The new name keeps the prefix, so that a later sweep finds what was left half done.
 *
 * @param {string} directory
 * @returns {string}
 */
function setAside(directory) {
  const aside = path.join(path.dirname(directory), `${PREFIX}removed-${randomBytes(12).toString('hex')}`);
  fs.renameSync(directory, aside);
  return aside;
}

/** @param {string} directory */
function removeDirectory(directory) {
  fs.rmSync(setAside(directory), { recursive: true, force: true });
}

/**
 * Removes what primaries left that were killed before they could: directories of this user named like ours, in which
 * nothing has changed for ten minutes (a lock or mark that is kept fresh included), and whose owner is not alive.
 *
 * @param {string[]} places
 * @param {string} except our own directory
 * @param {() => number} now
 * @returns {Promise<string[]>} absolute paths of those removed
 */
async function sweep(places, except, now) {
  const removed = [];
  for (const directory of await spoolsIn(places)) {
    try {
      if (directory === except || !(await isAbandoned(directory, now() - SWEEP_AGE_MS))) continue;
      await fs.promises.rm(setAside(directory), { recursive: true, force: true });
      removed.push(directory);
    } catch (error) {
      debug('cannot sweep %s: %s', directory, messageOf(error));
    }
  }
  return removed;
}

/**
 * @param {string[]} places
 * @returns {Promise<string[]>}
 */
async function spoolsIn(places) {
  const found = new Set();
  for (const place of places) {
    try {
      const parent = await fs.promises.realpath(place);
      for (const name of await fs.promises.readdir(parent)) {
        if (name.startsWith(PREFIX)) found.add(path.join(parent, name));
      }
    } catch (error) {
      debug('cannot sweep in %s: %s', place, messageOf(error));
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
  if (!isOurs(await fs.promises.lstat(directory))) return false;
  if (await hasChanged(directory, since)) return false;
  return !isKnownToLive(readOwner(directory));
}

/**
 * Whether a file, or anything below a directory, was written at or after a time. Does not follow links.
 *
 * @param {string} file
 * @param {number} since
 * @returns {Promise<boolean>}
 */
async function hasChanged(file, since) {
  const stat = await fs.promises.lstat(file);
  if (stat.mtimeMs >= since) return true;
  if (!stat.isDirectory()) return false;
  for (const name of await fs.promises.readdir(file)) {
    if (await hasChanged(path.join(file, name), since)) return true;
  }
  return false;
}

module.exports = { PREFIX, sweep, removeDirectory };
