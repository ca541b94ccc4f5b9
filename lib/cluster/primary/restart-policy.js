'use strict';

// Runs on the primary's loop. Decides how the aggregation goes on after its thread was lost: in another
// thread, in place if threads do not last, or after a pause.

// After more losses within this time, no other thread is started for some minutes.
const MAX_LOSSES = 5;
const LOSS_WINDOW_MILLISECONDS = 60_000;

// The same after so many losses without a page, so that the last try of a round succeeds.
const MAX_LOSSES_WITHOUT_PAGE = 2;

// Pauses before another thread is started after one has run out of memory, or after nothing could be started.
// They double, up to the longest.
const FIRST_PAUSE_MILLISECONDS = 1000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

class RestartPolicy {
  /** @type {number[]} times of recent losses, by performance.now() */
  #losses = [];
  /** Losses since the last page was written. */
  #lossesWithoutPage = 0;
  /** Milliseconds of the last pause. */
  #pause = 0;
  /** When it began, by performance.now(). */
  #pausedAt = -Infinity;
  /** Whether threads are lost again and again. */
  isUnstable = false;

  /** Notes that a thread was lost. */
  noteLoss() {
    const now = performance.now();
    this.#losses = [...this.#losses.filter(time => now - time < LOSS_WINDOW_MILLISECONDS), now];
    this.#lossesWithoutPage++;
    this.isUnstable = this.#losses.length > MAX_LOSSES || this.#lossesWithoutPage >= MAX_LOSSES_WITHOUT_PAGE;
  }

  /** Notes that a page was written. */
  noteWritten() {
    this.#lossesWithoutPage = 0;
  }

  /** Forgets all losses, because threads are tried again. */
  forgetLosses() {
    this.#losses = [];
    this.#lossesWithoutPage = 0;
    this.isUnstable = false;
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
