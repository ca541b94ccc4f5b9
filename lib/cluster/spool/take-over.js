'use strict';

// Runs in the process that aggregates a group from now on, on its event loop. Takes over the directory of
// snapshot files of an earlier holder, which is dead or stopped.

const fs = require('node:fs');
const path = require('node:path');
const { OWNER_FILE, ownerRecord } = require('./owner');
const { removeDirectory } = require('./sweep');
const { isOurs, writeFile } = require('./safe-files');

/**
 * Moves a spool directory, and makes this process its owner. The aggregator continues with it.
 *
 * @param {string} from
 * @param {string} to
 * @returns {string} `to`
 * @throws {Error} if it is not a directory of this user
 */
function takeOver(from, to) {
  if (!isOurs(fs.lstatSync(from))) throw new Error('not a spool of this user');
  fs.renameSync(from, to);
  writeFile(path.join(to, OWNER_FILE), [ownerRecord(Date.now())]);
  return to;
}

module.exports = { takeOver, removeDirectory };
