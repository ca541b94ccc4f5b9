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

/**
 * @param {unknown} task from a message of a thread
 * @returns {task is string} whether it may be the number of one
 */
function isTask(task) {
  return typeof task === 'string' && /^\d{1,20}$/.test(task);
}

/**
 * Not by a list of all threads: the kernel's list ends early if one of them ends meanwhile.
 *
 * @param {string} task number of a thread of this process
 */
function isRunning(task) {
  return fs.existsSync(`/proc/self/task/${task}`);
}

module.exports = { ownTask, isTask, isRunning };
