'use strict';

/** The remaining time of a measurement, which is a sequence of phases of planned lengths. */
class TimeLeft {
  #lengths;
  #now;
  #ends = 0;

  /**
   * @param {number[]} lengths of the stretches in seconds, in their order
   * @param {() => number} [now] milliseconds
   */
  constructor(lengths, now = () => performance.now()) {
    this.#lengths = [...lengths];
    this.#now = now;
  }

  /** The next phase begins. A phase that takes longer than planned delays the following ones. */
  begin() {
    this.#ends = this.#now() + this.#lengths.shift() * 1000;
  }

  /** @returns {string} `m:ss left` */
  toString() {
    const ofThis = Math.max(0, (this.#ends - this.#now()) / 1000);
    const seconds = Math.ceil(this.#lengths.reduce((sum, length) => sum + length, ofThis));
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left`;
  }
}

module.exports = { TimeLeft };
