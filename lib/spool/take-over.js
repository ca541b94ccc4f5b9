'use strict';

// Runs in the process that aggregates a group from now on, on its event loop. Takes over the directory of
// snapshot files of an earlier holder, which is dead or stopped.

const fs = require('node:fs');
const path = require('node:path');
const { OWNER_FILE, ownerRecord } = require('./owner');
const { removeDirectory } = require('./sweep');
const { isOurs, writeFile } = require('./safe-files');

/**
 * Moves a spool directory, and makes this process its owner. The aggregator continues with it. The record is
 * written after the move: before, another process may write its own, and only one of them moves it.
 *
 * @param {string} from
 * @param {string} to
 * @returns {string | undefined} `to`; undefined if `from` is not a directory of this user
 * @throws {Error} if it cannot be moved, or its owner cannot be written: it is where it was
 */
function takeOver(from, to) {
  if (!isOurs(fs.lstatSync(from))) return undefined;
  fs.renameSync(from, to);
  try {
    writeFile(path.join(to, OWNER_FILE), [ownerRecord(Date.now())]);
  } catch (error) {
    fs.renameSync(to, from);
    throw error;
  }
  return to;
}

module.exports = { takeOver, removeDirectory };
