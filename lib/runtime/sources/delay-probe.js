'use strict';

// Samples how long a callback that becomes due at any time waits for the event loop.
//
// Time is divided into intervals of equal length. In each interval a timer becomes due at a random moment.
// Timers at a fixed distance would fall into step with a periodic program, and would hit each of its stalls
// or none. When a stall ends, the intervals that passed during it are counted as well. So every count stands
// for the same amount of time; this is the correction for coordinated omission that HdrHistogram makes
// afterwards. Without it, a stall of a second would be one sample among fifty.

const { setTimeout, clearTimeout } = require('timers');
const { performance } = require('perf_hooks');

// An idle loop is probed a tenth as often, and each of its probes counts ten times: waking a process costs
// 0.2 ms, because its caches are cold. At the default interval of 20 ms an idle process spends 0.09 % of a
// CPU on the probe; without this mode 0.88 %, which alone would use up the budget of 1 % for all default
// metrics.
const MAX_ACTIVE_SHARE_WHEN_IDLE = 0.05;
const INTERVALS_WHEN_IDLE = 10;

const NANOSECONDS_PER_MILLISECOND = 1e6;

/**
 * @typedef {object} Clock times in milliseconds
 * @property {() => number} now
 * @property {() => number} idleTime time that the loop has waited for events; 0 if the runtime does not know
 * @property {(callback: () => void, delay: number) => any} setTimeout a timer that keeps no process alive
 * @property {(timer: any) => void} clearTimeout
 * @property {() => number} random at least 0, below 1
 */

/** @type {Clock} */
const SYSTEM_CLOCK = {
  // Takes 1 µs; performance.now() takes 15 µs with cold caches.
  now: () => Number(process.hrtime.bigint()) / NANOSECONDS_PER_MILLISECOND,
  idleTime: () => performance?.nodeTiming?.idleTime ?? 0,
  setTimeout: (callback, delay) => setTimeout(callback, delay).unref(),
  clearTimeout,
  random: Math.random,
};

/** Probes the event loop from its construction on. */
class DelayProbe {
  #interval;
  #record;
  #clock;
  /** @type {any} */
  #timer;
  /** When the current interval, or the current ten when idle, ends. */
  #end = NaN;
  /** When the timer of the current interval is due. */
  #due = NaN;
  /** How often the current probe counts. */
  #weight = 1;
  #lastNow = NaN;
  #lastIdle = 0;

  /**
   * @param {number} interval milliseconds
   * @param {(delay: number, count: number) => void} record called with milliseconds, and how often they count
   * @param {Clock} [clock]
   */
  constructor(interval, record, clock = SYSTEM_CLOCK) {
    this.#interval = interval;
    this.#record = record;
    this.#clock = clock;
    // Begins when the loop first runs a timer: the main script of a starting program delays nobody's
    // callbacks.
    this.#timer = clock.setTimeout(() => this.#begin(), this.#interval);
  }

  stop() {
    this.#clock.clearTimeout(this.#timer);
  }

  #begin() {
    this.#lastNow = this.#end = this.#clock.now();
    this.#lastIdle = this.#clock.idleTime();
    this.#schedule(this.#lastNow);
  }

  #probe() {
    const now = this.#clock.now();
    const idle = this.#clock.idleTime();
    // Timers count whole milliseconds, so one may fire up to a millisecond early.
    this.#record(Math.max(0, now - this.#due), this.#weight);
    const passed = now - this.#lastNow;
    const active = passed - (idle - this.#lastIdle);
    this.#weight = active <= passed * MAX_ACTIVE_SHARE_WHEN_IDLE ? INTERVALS_WHEN_IDLE : 1;
    this.#lastNow = now;
    this.#lastIdle = idle;
    this.#schedule(now);
  }

  /**
   * Sets the timer of the next interval. Intervals whose timer was due before `now`, because the loop was
   * blocked, are counted at once.
   *
   * @param {number} now
   */
  #schedule(now) {
    const length = this.#weight * this.#interval;
    for (;;) {
      this.#due = this.#end + this.#clock.random() * length;
      this.#end += length;
      if (this.#due > now) break;
      this.#record(now - this.#due, this.#weight);
    }
    this.#timer = this.#clock.setTimeout(() => this.#probe(), this.#due - now);
  }
}

module.exports = { DelayProbe };
