'use strict';

const fs = require('node:fs');

const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;

// Open all the time: what is measured with it can be some hundredths of a millisecond long.
const account = fs.existsSync(SCHEDSTAT) ? fs.openSync(SCHEDSTAT, 'r') : undefined;
const buffer = Buffer.alloc(128);

/**
 * How long the main thread has waited in the run queue since it started. Unlike its CPU account, this is up
 * to date at any time: the kernel adds to it when the thread gets a processor.
 *
 * @returns {number} milliseconds; always 0 if the kernel does not report it
 */
function processorWait() {
  if (account === undefined) return 0;
  const length = fs.readSync(account, buffer, 0, buffer.length, 0);
  return Number(buffer.latin1Slice(0, length).split(' ')[1]) / 1e6;
}

module.exports = { processorWait };
