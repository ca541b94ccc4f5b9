'use strict';

const fs = require('node:fs');

const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;
const isKnown = fs.existsSync(SCHEDSTAT);

/**
 * How long the main thread has stood in the queue for a processor since it began. Unlike its CPU account, this is up to
 * date at any time: the kernel adds to it when the thread gets a processor.
 *
 * @returns {number} milliseconds; always 0 where the kernel does not tell
 */
function processorWait() {
  return isKnown ? Number(fs.readFileSync(SCHEDSTAT, 'latin1').split(' ')[1]) / 1e6 : 0;
}

module.exports = { processorWait };
