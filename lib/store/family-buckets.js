'use strict';

// The sparse buckets of a native histogram's family, merged from those of all sources. A row is merged again
// only if one of its sources has changed.

const { NO_BUCKETS, mergeBuckets, countOf } = require('../series/merged-buckets');
const { isSame } = require('../series/layouts');

const ROWS_PER_STEP = 64;

/**
 * Only a hostile worker counts more. A page has twice the difference of two counts, which would be inexact:
 * servers refuse a page whose counts differ.
 */
const MOST_OBSERVATIONS = 2 ** 52;

/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {import('../source/extras').SourceBuckets} SourceBuckets */

class FamilyBuckets {
  /** @type {{key: number[] | undefined, buckets: Buckets}[]} by row */
  #merged = [];
  /** @type {{workerId: number, row: number, buckets: SourceBuckets}[][]} by row, in the current scrape */
  #contributions = [];

  /** Starts a scrape. */
  begin() {
    this.#contributions = [];
  }

  /**
   * Drops all rows but these, which have new numbers now.
   *
   * @param {number[]} rows in the order of the new numbers
   */
  compact(rows) {
    this.#merged = rows.map(row => this.#merged[row]);
  }

  /**
   * @param {number} row
   * @returns {Buckets | undefined} as merged last; undefined if no source had any
   */
  of(row) {
    return this.#merged[row]?.buckets;
  }

  /** The buckets of a row on the page. */
  shown = (/** @type {number} */ row) => this.of(row) ?? NO_BUCKETS;

  /**
   * @param {number} row of the family
   * @param {number} workerId
   * @param {SourceBuckets} buckets
   * @param {number} sourceRow
   */
  contribute(row, workerId, buckets, sourceRow) {
    (this.#contributions[row] ??= []).push({ workerId, row: sourceRow, buckets });
  }

  /**
   * Merges the rows that have changed since the last scrape.
   *
   * @param {Iterable<number>} order the rows of this scrape
   * @param {string} rule name of a built-in aggregator
   * @returns {Generator<void, void>} yields where a slice may end
   * @throws {RangeError} if there is no such sum of native histograms
   */
  *merge(order, rule) {
    if (rule !== 'sum' && rule !== 'first') throw new RangeError(`no ${rule} of native histograms`);
    let steps = 0;
    for (const row of order) {
      const all = this.#contributions[row] ?? [];
      this.#mergeRow(row, rule === 'first' ? all.slice(0, 1) : all);
      if (++steps % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * @param {number} row
   * @param {{workerId: number, row: number, buckets: SourceBuckets}[]} contributions
   */
  #mergeRow(row, contributions) {
    const before = this.#merged[row];
    const key = keyOf(contributions);
    if (before !== undefined && before.key !== undefined && key !== undefined && isSame(key, before.key))
      return;
    const all = contributions.flatMap(each => each.buckets.read(each.row) ?? []);
    if (all.length === 0) return;
    const sum = mergeBuckets(all);
    this.#merged[row] = { key, buckets: countOf(sum) <= MOST_OBSERVATIONS ? sum : NO_BUCKETS };
  }
}

/**
 * @param {{workerId: number, row: number, buckets: SourceBuckets}[]} contributions
 * @returns {number[] | undefined} equal only if nothing has changed; undefined if that is not known
 */
function keyOf(contributions) {
  /** @type {number[]} */
  const key = [];
  for (const { workerId, row, buckets } of contributions) {
    const changes = buckets.changesOf(row);
    if (changes === undefined) return undefined;
    key.push(workerId, changes);
  }
  return key;
}

module.exports = { FamilyBuckets };
