'use strict';

// Runs on the primary's loop. Decides how aggregation continues after its thread was lost: in another thread,
// after a pause, or for good in place if threads do not last.

// After three losses, each within this time of the one before, no other thread is started. A thread that
// hangs at its first request counts as lost after 30 seconds.
const MAX_LOSSES = 3;
const LOSS_WINDOW_MILLISECONDS = 40_000;

// Pauses before the next start, if a thread has run out of memory or nothing could be started. Each is twice
// as long as the one before, up to the longest.
const FIRST_PAUSE_MILLISECONDS = 1000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

class RestartPolicy {
  /** Consecutive losses, each within that time of the one before. */
  #losses = 0;
  /** When the last thread was lost, by performance.now(). */
  #lostAt = -Infinity;
  /** Length of the last pause, milliseconds. */
  #pause = 0;
  /** Start of the last pause, by performance.now(). */
  #pausedAt = -Infinity;
  /** Whether threads were lost again and again: from then on, the aggregation runs in place. */
  isUnstable = false;

  /** Notes that a thread was lost. */
  noteLoss() {
    const now = performance.now();
    this.#losses = now - this.#lostAt < LOSS_WINDOW_MILLISECONDS ? this.#losses + 1 : 1;
    this.#lostAt = now;
    this.isUnstable ||= this.#losses >= MAX_LOSSES;
  }

  /** @returns {number} milliseconds before the next start: longer each time, unless the last is long ago */
  nextPause() {
    const now = performance.now();
    const isRepeated = now - this.#pausedAt < 2 * LONGEST_PAUSE_MILLISECONDS;
    this.#pausedAt = now;
    this.#pause = isRepeated
      ? Math.min(this.#pause * 2, LONGEST_PAUSE_MILLISECONDS)
      : FIRST_PAUSE_MILLISECONDS;
    return this.#pause;
  }
}

module.exports = { RestartPolicy };
