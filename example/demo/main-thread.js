'use strict';

// What the main thread of this process does, seen from outside the libraries that run on it.

const fs = require('node:fs');

const TICK_MS = 1;
const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;

const account = fs.existsSync(SCHEDSTAT) ? fs.openSync(SCHEDSTAT, 'r') : undefined;
const buffer = Buffer.alloc(128);

/**
 * @returns {{used: number, waited: number}} milliseconds since the thread started: on a processor, and in the
 *   queue for one. NaN and 0 where the kernel does not report them.
 */
function schedulerAccount() {
  if (account === undefined) return { used: NaN, waited: 0 };
  const length = fs.readSync(account, buffer, 0, buffer.length, 0);
  const [used, waited] = buffer.latin1Slice(0, length).split(' ');
  return { used: Number(used) / 1e6, waited: Number(waited) / 1e6 };
}

/**
 * @typedef {object} Readings
 * @property {number} cpu milliseconds since the process started, all threads
 * @property {number} mainThreadCpu milliseconds since the thread started; NaN where it is unknown
 * @property {number} longestSection milliseconds, since the last reading
 */

/**
 * Finds the longest section in which the main thread did not return to its event loop: the longest time
 * between two ticks of a timer, without the time in which the thread waited for a processor. So other
 * programs do not make a section longer. A section below a millisecond can show as one.
 */
class MainThread {
  #now;
  #accountOf;
  #timer;
  #lastTick = 0;
  #lastWaited = 0;
  #longestSection = 0;

  /**
   * @param {() => number} [now] milliseconds
   * @param {() => {used: number, waited: number}} [accountOf]
   */
  constructor(now = () => performance.now(), accountOf = schedulerAccount) {
    this.#now = now;
    this.#accountOf = accountOf;
  }

  /** @returns {Readings} the first call begins to look for sections */
  read() {
    this.#tick();
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    const longestSection = this.#longestSection;
    this.#longestSection = 0;
    const { user, system } = process.cpuUsage();
    return { cpu: (user + system) / 1e3, mainThreadCpu: this.#accountOf().used, longestSection };
  }

  #tick() {
    const now = this.#now();
    const { waited } = this.#accountOf();
    if (this.#timer) {
      const section = now - this.#lastTick - (waited - this.#lastWaited) - TICK_MS;
      this.#longestSection = Math.max(this.#longestSection, section);
    }
    this.#lastTick = now;
    this.#lastWaited = waited;
  }

  /** Ends the timer. */
  stop() {
    clearInterval(this.#timer);
  }
}

module.exports = { MainThread };
