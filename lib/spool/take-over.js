'use strict';

// Runs in the process that aggregates a group from now on, on its event loop. Takes over the directory of
// snapshot files of an earlier leader, which is dead or stopped.

const fs = require('node:fs');
const { removeDirectory } = require('./sweep');
const { isOurs } = require('./safe-files');

/**
 * Moves a spool directory: the aggregator continues with it. Only one of several processes succeeds.
 *
 * @param {string} from
 * @param {string} to
 * @returns {string | undefined} `to`; undefined if `from` is not a directory of this user
 * @throws {Error} if it cannot be moved
 */
function takeOver(from, to) {
  if (!isOurs(fs.lstatSync(from))) return undefined;
  fs.renameSync(from, to);
  return to;
}

module.exports = { takeOver, removeDirectory };
