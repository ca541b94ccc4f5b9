'use strict';

// The clock by which series expire (the option maxIdleSeconds). Tests replace both functions: see
// test/fixtures/idle-clock.js.

const { milliseconds } = require('./slices');
const { MAX_TIMER, setRealTimeout, unref } = require('./timers');

const idleClock = {
  /** @returns {number} milliseconds; a clock that never goes back */
  now: milliseconds,

  /**
   * Calls a function later, unless the process ends before.
   *
   * @param {number} milliseconds
   * @param {() => unknown} call
   */
  after: (milliseconds, call) => {
    unref(setRealTimeout(call, Math.min(milliseconds, MAX_TIMER)));
  },
};

module.exports = { idleClock };
