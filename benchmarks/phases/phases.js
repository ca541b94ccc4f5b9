'use strict';

const { median } = require('../shared/statistics.js');

/** Durations in milliseconds by phase, in order of their first mention. */
class Phases {
  #durations = new Map();
  #warmUps;

  /** @param {number} warmUps how many durations of each phase are ignored */
  constructor(warmUps) {
    this.#warmUps = warmUps;
  }

  /**
   * @template T
   * @param {string} name
   * @param {() => T} work
   * @returns {T}
   */
  time(name, work) {
    const began = performance.now();
    const result = work();
    this.note(name, performance.now() - began);
    return result;
  }

  /**
   * @param {string} name
   * @param {number} duration
   */
  note(name, duration) {
    this.#durations.set(name, [...(this.#durations.get(name) ?? []), duration]);
  }

  /** @returns {string[]} */
  get names() {
    return [...this.#durations.keys()];
  }

  /** @param {string} name */
  medianOf(name) {
    return median(this.#durations.get(name).slice(this.#warmUps));
  }
}

module.exports = { Phases };
