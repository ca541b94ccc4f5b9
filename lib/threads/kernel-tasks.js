'use strict';

// Finds threads of this process by the kernel's numbers. Only Linux shows these, in /proc.

const fs = require('node:fs');
const path = require('node:path');

/** @returns {string | undefined} the number of this thread; undefined if the system does not show it */
function ownTask() {
  try {
    return path.basename(fs.readlinkSync('/proc/thread-self'));
  } catch {
    return undefined;
  }
}

/**
 * Does not list all threads, because the kernel's list ends early if one of them ends meanwhile.
 *
 * @param {string} task number of a thread of this process
 */
function isRunning(task) {
  return fs.existsSync(`/proc/self/task/${task}`);
}

module.exports = { ownTask, isRunning };
