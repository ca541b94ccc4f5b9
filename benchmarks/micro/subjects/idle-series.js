'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { OURS } = require('../../shared/clients.js');

const RECORDING = path.join(__dirname, '..', 'idle-recording.js');
const ROUNDS = 31;

/**
 * Both alternate, and the lowest of all times counts: other programs only make a call longer. The first round
 * is left out, in which code is compiled.
 */
function compared(kind) {
  return async ({ seconds }) => {
    const threads = [undefined, 600].map(
      maxIdleSeconds => new Worker(RECORDING, { workerData: { kind, maxIdleSeconds } }),
    );
    try {
      const lowest = [Infinity, Infinity];
      for (let round = 0; round <= ROUNDS; round++) {
        for (const number of round % 2 === 0 ? [0, 1] : [1, 0]) {
          threads[number].postMessage((2 * seconds) / ROUNDS);
          const [time] = await once(threads[number], 'message');
          if (round > 0) lowest[number] = Math.min(lowest[number], time);
        }
      }
      const [without, time] = lowest;
      return { time, share: time / without };
    } finally {
      await Promise.all(threads.map(thread => thread.terminate()));
    }
  };
}

const caseOf = (key, title) => ({
  key,
  title,
  figures: { time: 'ns', share: 'x' },
  clients: [OURS],
  measure: compared(key),
});

module.exports = {
  title: 'Recording with `maxIdleSeconds`',
  note: 'Time with the option, and how many times that without it. Both alternate, in threads of their own; the lowest of 31 rounds each.',
  cases: [
    caseOf('inc', '`inc(labels)`, 2,000 label sets'),
    caseOf('child', '`inc()` of one child'),
    caseOf('observe', '`observe(labels, value)`, 2,000 label sets'),
  ],
};
