'use strict';

/**
 * Waits for a child's next message of a type.
 *
 * @param {import('node:child_process').ChildProcess} child forked with IPC
 * @param {string} type the message's `type`
 * @returns {Promise<object>} rejects when the child ends first
 */
function nextMessage(child, type) {
  return new Promise((resolve, reject) => {
    const receive = message => {
      if (message.type === type) settle(resolve, message);
    };
    const fail = (code, signal) => {
      const script = child.spawnargs.slice(1, 2).join();
      settle(reject, new Error(`${script} ended early (${signal ?? `exit code ${code}`})`));
    };
    const settle = (action, outcome) => {
      child.off('message', receive);
      child.off('exit', fail);
      action(outcome);
    };
    if (child.exitCode !== null || child.signalCode !== null) fail(child.exitCode, child.signalCode);
    child.on('message', receive);
    child.on('exit', fail);
  });
}

/**
 * Waits for a child to end, and ends it when it does not do so in time.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} milliseconds
 * @returns {Promise<boolean>} whether it ended by itself
 */
function endedWithin(child, milliseconds) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(true);
  return new Promise(resolve => {
    let byItself = true;
    const killer = setTimeout(() => {
      byItself = false;
      child.kill('SIGKILL');
    }, milliseconds);
    child.once('exit', () => {
      clearTimeout(killer);
      resolve(byItself);
    });
  });
}

module.exports = { nextMessage, endedWithin };
