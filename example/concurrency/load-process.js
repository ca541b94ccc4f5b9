'use strict';

const { fork } = require('node:child_process');
const path = require('node:path');
const { endedWithin, nextMessage } = require('../demo/child-messages');

const END_WITHIN_MS = 3000;

/** The load generator, as the process that started it sees it. It runs one load at a time. */
class LoadProcess {
  // In its own process group, so that Ctrl-C reaches this process only, which then ends the child.
  #child = fork(path.join(__dirname, 'load.js'), { detached: true, execArgv: [] });

  constructor() {
    this.pid = this.#child.pid;
  }

  /**
   * @param {object} options
   * @param {string} options.url base URL of the service
   * @param {number} options.clients how many of them send requests, each one at a time
   * @param {number} [options.rate] requests per second of all clients together; default: as fast as they are
   *   answered
   */
  start({ url, clients, rate }) {
    this.#child.send({ type: 'start', url, clients, rate });
  }

  /**
   * Lets every client get its last answer.
   *
   * @returns {Promise<{sent: number, answered: number, failed: number}>} since the start
   */
  async stop() {
    const stopped = nextMessage(this.#child, 'stopped');
    this.#child.send({ type: 'stop' });
    return (await stopped).totals;
  }

  /** Ends the load generator at once, whatever it is doing. */
  async end() {
    this.#child.kill('SIGKILL');
    await endedWithin(this.#child, END_WITHIN_MS);
  }
}

module.exports = { LoadProcess };
