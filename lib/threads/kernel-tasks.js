'use strict';

// The threads of this process as the kernel numbers them. Only Linux shows them, in /proc.

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

/** @returns {string[] | undefined} the numbers of all threads; undefined if the system does not show them */
function runningTasks() {
  try {
    return fs.readdirSync('/proc/self/task');
  } catch {
    return undefined;
  }
}

module.exports = { ownTask, runningTasks };
