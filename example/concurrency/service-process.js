'use strict';

const { fork } = require('node:child_process');
const path = require('node:path');
const { endedWithin, nextMessage } = require('../demo/child-messages');

const END_WITHIN_MS = 3000;

/** The service, as the process that started it sees it. */
class ServiceProcess {
  #child;

  /**
   * Starts the service. Wait for {@link ready} before using it.
   *
   * @param {object} options
   * @param {number} options.limit how many tasks may run at a time
   * @param {string[]} [options.nodeOptions] such as `--max-semi-space-size=64`
   */
  constructor({ limit, nodeOptions = [] }) {
    const script = path.join(__dirname, 'service.js');
    // In its own process group, so that Ctrl-C reaches this process only, which then ends the child.
    this.#child = fork(script, [String(limit)], { detached: true, execArgv: nodeOptions });
    this.pid = this.#child.pid;
  }

  /** Resolves when the service listens; sets `url` and `metricsUrl`. */
  async ready() {
    const { port } = await nextMessage(this.#child, 'ready');
    this.url = `http://127.0.0.1:${port}`;
    this.metricsUrl = `${this.url}/metrics`;
  }

  /** @param {number} limit holds from when the promise resolves */
  async setLimit(limit) {
    const limited = nextMessage(this.#child, 'limited');
    this.#child.send({ type: 'limit', limit });
    await limited;
  }

  /** Ends the service at once, whatever it is doing. */
  async end() {
    this.#child.kill('SIGKILL');
    await endedWithin(this.#child, END_WITHIN_MS);
  }
}

module.exports = { ServiceProcess };
