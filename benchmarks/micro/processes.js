'use strict';

const { fork } = require('node:child_process');
const path = require('node:path');

const TIME_LIMIT = 120_000;

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

/**
 * Measures one case with one library in a fresh process.
 *
 * @param {{id: string, client: string, seconds: number}} settings
 * @returns {Promise<{figures: Record<string, number>} | {error: string}>} never rejects
 */
function measureInProcess(settings) {
  const child = fork(path.join(__dirname, 'measure.js'), [JSON.stringify(settings)], {
    execArgv: [...process.execArgv, '--expose-gc'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  running.add(child);
  return new Promise(resolve => {
    let answer = { error: 'the process ended without an answer' };
    const limit = setTimeout(() => {
      answer = { error: `took longer than ${TIME_LIMIT / 1000} s` };
      child.kill('SIGKILL');
    }, TIME_LIMIT);
    child.on('message', message => (answer = message));
    child.on('error', error => (answer = { error: error.message }));
    child.on('close', () => {
      clearTimeout(limit);
      running.delete(child);
      resolve(answer);
    });
  });
}

function stopAllProcesses() {
  for (const child of running) child.kill('SIGKILL');
}

module.exports = { measureInProcess, stopAllProcesses };
