'use strict';

// What the rows of a family have besides numbers, merged from all sources: digests, or sparse buckets. A row
// is merged again only if one of its sources has changed.

const { isSame } = require('../series/layouts');

const ROWS_PER_STEP = 64;

/**
 * What one source has of a row. `version` changes with it; NaN if that is not known.
 *
 * @template E
 * @typedef {{workerId: number, version: number, extra: E}} Contribution
 */

/**
 * @template E of a source
 * @template M merged
 */
class FamilyExtras {
  /** @type {{key: number[], merged: M}[]} by row */
  #merged = [];
  /** @type {Contribution<E>[][]} by row, in the current scrape */
  #contributions = [];
  #settings = '';

  /** Starts a scrape. */
  begin() {
    this.#contributions = [];
  }

  /**
   * @param {number} row
   * @returns {M | undefined} as merged last
   */
  of(row) {
    return this.#merged[row]?.merged;
  }

  /**
   * @param {number} row
   * @param {number} workerId
   * @param {number} version
   * @param {E} extra
   */
  contribute(row, workerId, version, extra) {
    (this.#contributions[row] ??= []).push({ workerId, version, extra });
  }

  /**
   * Merges the rows that have changed since the last scrape.
   *
   * @param {Iterable<number>} order the rows of this scrape
   * @param {string} settings if they change, all rows are merged again
   * @param {(extras: E[]) => M} merge
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *merge(order, settings, merge) {
    if (settings !== this.#settings) this.#merged = [];
    this.#settings = settings;
    let steps = 0;
    for (const row of order) {
      const contributions = this.#contributions[row] ?? [];
      const key = contributions.flatMap(({ workerId, version }) => [workerId, version]);
      const before = this.#merged[row];
      const isUnchanged = before !== undefined && isSame(before.key, key) && !key.includes(NaN);
      if (!isUnchanged) {
        this.#merged[row] = { key, merged: merge(contributions.map(({ extra }) => extra)) };
        yield;
      } else if (++steps % ROWS_PER_STEP === 0) {
        yield;
      }
    }
  }
}

module.exports = { FamilyExtras };
