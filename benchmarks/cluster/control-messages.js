'use strict';

// The benchmark's own messages between its primary and workers travel over the same channel as the library's.
// They all begin with this key, so the IPC meter can distinguish them by the first bytes of their JSON.

const CONTROL_KEY = 'bench';
const CONTROL_PREFIX = `{"${CONTROL_KEY}":`;

/**
 * @param {unknown} message
 * @returns {boolean}
 */
function isControl(message) {
  return typeof message === 'object' && message !== null && CONTROL_KEY in message;
}

let lastId = 0;

/**
 * Sends a command to every worker, and collects the answers in order.
 *
 * @param {import('node:cluster').Worker[]} workers
 * @param {string} command
 * @param {object} [parameters]
 * @returns {Promise<any[]>}
 */
function askWorkers(workers, command, parameters) {
  const id = ++lastId;
  return Promise.all(
    workers.map(worker => {
      const answer = answerOf(worker, id);
      worker.send({ [CONTROL_KEY]: command, id, ...parameters });
      return answer;
    }),
  );
}

function answerOf(worker, id) {
  return new Promise(resolve => {
    worker.on('message', function take(message) {
      if (!isControl(message) || message.id !== id) return;
      worker.off('message', take);
      resolve(message.answer);
    });
  });
}

module.exports = { CONTROL_PREFIX, askWorkers, isControl };
