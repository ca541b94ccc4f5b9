'use strict';

// Runs on the primary's loop. Counts by reason. Workers may send any text as a reason, so the number of
// different ones is limited.

const MAX_REASONS = 32;

class ReasonCounts {
  /** @type {Map<string, number>} */
  #counts = new Map();

  /** @param {string} reason counted as `other` if there are many different ones already */
  add(reason) {
    const isNew = !this.#counts.has(reason);
    const key = isNew && this.#counts.size >= MAX_REASONS ? 'other' : reason;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** @returns {[reason: string, count: number][]} */
  get entries() {
    return [...this.#counts];
  }

  /** @returns {number} */
  get total() {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }
}

module.exports = { ReasonCounts };
