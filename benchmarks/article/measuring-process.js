'use strict';

const { fork } = require('node:child_process');

/** A process that executes commands and returns results: the load generator, the scraper. */
class MeasuringProcess {
  #process;
  #waiting = new Map();
  #lastId = 0;

  /**
   * @param {string} program
   * @param {string[]} [flags] of Node.js
   */
  constructor(program, flags = []) {
    // in its own process group: Ctrl-C reaches only the runner, and this process ends after it
    this.#process = fork(program, { detached: true, execArgv: [...process.execArgv, ...flags] });
    this.#process.on('message', message => this.#take(message));
    this.#process.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${program} has gone`));
      this.#waiting.clear();
    });
  }

  /** @returns {number} */
  get pid() {
    return this.#process.pid;
  }

  /**
   * @param {string | undefined} command
   * @param {object} settings
   * @param {() => void} [onBegun] called when it reports that it has begun
   * @returns {Promise<any>} rejects with its error, or when it has gone
   */
  call(command, settings, onBegun) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onBegun });
      this.#process.send({ id, command, settings }, error => error && reject(error));
    });
  }

  #take({ id, hasBegun, answer, error }) {
    const call = this.#waiting.get(id);
    if (hasBegun) {
      call.onBegun?.();
      return;
    }
    this.#waiting.delete(id);
    if (error === undefined) call.resolve(answer);
    else call.reject(new Error(error));
  }

  /** The process ends when the channel closes. */
  stop() {
    if (this.#process.connected) this.#process.disconnect();
  }
}

module.exports = { MeasuringProcess };
