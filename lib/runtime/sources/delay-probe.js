'use strict';

// How long a callback that becomes due at any time waits for the event loop, by samples.
//
// Time is divided into stretches of equal length. In each of them a timer becomes due, at a moment that is left to chance
// and does not depend on what the loop does: a program has rhythms of its own, and probes that kept a distance from one
// another would fall into step with them, and find each of its stalls, or none. Timers that were due while the loop stood
// are all counted when it goes on. So each count stands for the same time, which is what HdrHistogram corrects for
// afterwards (coordinated omission); without it a stall of a second is one probe among fifty.

const { setTimeout, clearTimeout } = require('timers');
const { performance } = require('perf_hooks');

// A probe that wakes a process which does nothing takes 0.2 ms (the caches are cold), 50 a second one per cent of a CPU.
// So the stretches of a loop that has hardly worked since the last probe are longer, and their probes count as often.
const MOST_ACTIVE_AT_REST = 0.05;
const INTERVALS_AT_REST = 10;

const LONGEST_TIMER = 2 ** 31 - 1;

const NANOSECONDS_PER_MILLISECOND = 1e6;

/**
 * @typedef {object} Clock times in milliseconds
 * @property {() => number} now
 * @property {() => number} idleTime how long the loop has waited for something to do; 0 where the runtime does not know
 * @property {(callback: () => void, delay: number) => any} setTimeout keeps no process alive
 * @property {(timer: any) => void} clearTimeout
 * @property {() => number} random from 0, below 1
 */

/** @type {Clock} */
const SYSTEM_CLOCK = {
  // The clock that is read in 1 µs: performance.now() takes 15 where the caches are cold.
  now: () => Number(process.hrtime.bigint()) / NANOSECONDS_PER_MILLISECOND,
  idleTime: () => performance?.nodeTiming?.idleTime ?? 0,
  setTimeout: (callback, delay) => setTimeout(callback, delay).unref(),
  clearTimeout,
  random: Math.random,
};

/** Probes the event loop from its construction on. */
class DelayProbe {
  #interval;
  #counts;
  #clock;
  /** @type {any} */
  #timer;
  #end = NaN;
  #due = NaN;
  #weight = 1;
  #lastNow = NaN;
  #lastIdle = 0;

  /**
   * @param {number} interval milliseconds of a stretch
   * @param {Pick<import('../sampling/delay-counts').DelayCounts, 'add' | 'addSeries'>} counts gets milliseconds of delay
   * @param {Clock} [clock]
   */
  constructor(interval, counts, clock = SYSTEM_CLOCK) {
    this.#interval = Math.min(interval, LONGEST_TIMER / (2 * INTERVALS_AT_REST));
    this.#counts = counts;
    this.#clock = clock;
    // Not before the loop has come round: a program that is still starting keeps nobody waiting.
    this.#timer = clock.setTimeout(() => this.#begin(), this.#interval);
  }

  stop() {
    this.#clock.clearTimeout(this.#timer);
  }

  #begin() {
    this.#lastNow = this.#end = this.#clock.now();
    this.#lastIdle = this.#clock.idleTime();
    this.#next(this.#lastNow);
  }

  #probe() {
    const now = this.#clock.now();
    const idle = this.#clock.idleTime();
    this.#counts.add(now - this.#due, this.#weight);
    this.#skipTo(now);
    const passed = now - this.#lastNow;
    const isAtRest = passed - (idle - this.#lastIdle) <= passed * MOST_ACTIVE_AT_REST;
    this.#weight = isAtRest ? INTERVALS_AT_REST : 1;
    this.#lastNow = now;
    this.#lastIdle = idle;
    this.#next(now);
  }

  /**
   * Counts the stretches in which the loop stood all the time.
   *
   * @param {number} now
   */
  #skipTo(now) {
    const interval = this.#interval;
    const missed = Math.floor((now - this.#end) / interval);
    if (missed <= 0) return;
    this.#counts.addSeries(now - this.#end - this.#clock.random() * interval, interval, missed);
    this.#end += missed * interval;
  }

  /**
   * Begins the next stretch, which may lie partly in the past.
   *
   * @param {number} now
   */
  #next(now) {
    const length = this.#weight * this.#interval;
    this.#due = this.#end + this.#clock.random() * length;
    this.#end += length;
    if (this.#due <= now) {
      this.#counts.add(now - this.#due, this.#weight);
      this.#next(now);
    } else {
      this.#timer = this.#clock.setTimeout(() => this.#probe(), this.#due - now);
    }
  }
}

module.exports = { DelayProbe };
