'use strict';

const { fork } = require('node:child_process');
const path = require('node:path');
const { endedWithin, nextMessage } = require('./child-messages');
const { Latencies } = require('./latencies');

const END_WITHIN_MS = 3000;

/** One load on the application, in progress. */
class Load {
  /**
   * @param {number} amount
   * @param {Promise<{sent: number, answered: number, errors: number, timeouts: number}>} done
   */
  constructor(amount, done) {
    this.amount = amount;
    this.latencies = new Latencies();
    /**
     * autocannon's totals after the last answer. `sent` is ours, as autocannon counts the first request of
     * each client twice; timeouts are among the errors. Rejects when the load generator ends before.
     */
    this.done = done;
  }
}

/** The load generator, as the process that started it sees it. It runs one load at a time. */
class LoadGenerator {
  // In its own process group, so that Ctrl-C reaches this process only, which then ends the child.
  #child = fork(path.join(__dirname, 'load.js'), { detached: true });
  #load;

  constructor() {
    this.pid = this.#child.pid;
    this.#child.on('message', message => {
      if (message.type === 'progress') this.#load.latencies.add(message.latencies);
    });
  }

  /**
   * @param {object} options
   * @param {string} options.url base URL of the application
   * @param {number} options.rate requests per second
   * @param {number} options.amount requests in all
   * @returns {Load}
   */
  start({ url, rate, amount }) {
    const done = nextMessage(this.#child, 'done').then(({ totals }) => totals);
    this.#load = new Load(amount, done);
    this.#child.send({ type: 'run', url, rate, amount });
    return this.#load;
  }

  /** Ends the load generator at once, even during a load. */
  async stop() {
    this.#child.kill('SIGKILL');
    await endedWithin(this.#child, END_WITHIN_MS);
  }
}

module.exports = { LoadGenerator };
