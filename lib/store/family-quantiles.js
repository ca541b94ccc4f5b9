'use strict';

// The quantiles of a summary family, merged from the digests of all workers. A row is computed again only if
// one of its digests has changed.

const { mergeDigests, quantileOf, meanQuantile } = require('../metric/centroids');
const { isSame, aggregated } = require('../series/layouts');

/**
 * A summary's row in one worker: its digest, or only its quantiles if the worker runs prom-client.
 *
 * @typedef {{version: number, centroids: Float64Array} | {quantiles: Map<number, number>}} SourceDigest
 */

/**
 * `weight` is the number of observations.
 *
 * @typedef {{workerId: number, digest: SourceDigest, weight: number}} Contribution
 */

class FamilyQuantiles {
  /** @type {number[]} */
  #wanted = [];
  #rule = 'sum';
  /** @type {{key: number[], values: Float64Array}[]} by row */
  #quantiles = [];
  /** @type {Contribution[][]} by row, in the current scrape */
  #contributions = [];

  /** Starts a scrape. */
  begin() {
    this.#contributions = [];
  }

  /** Drops all results, because rows have been renumbered. */
  forget() {
    this.#quantiles = [];
  }

  /**
   * @param {number} row
   * @returns {Float64Array} in the order of the quantiles
   */
  valuesOf(row) {
    return this.#quantiles[row].values;
  }

  /**
   * @param {number} row
   * @param {number} workerId
   * @param {SourceDigest} digest
   * @param {number} weight
   */
  contribute(row, workerId, digest, weight) {
    (this.#contributions[row] ??= []).push({ workerId, digest, weight });
  }

  /**
   * Computes the quantiles of rows whose digests have changed since the last scrape.
   *
   * @param {Iterable<number>} order the rows of this scrape
   * @param {readonly number[]} quantiles the quantiles to compute
   * @param {string} rule name of a built-in aggregator
   * @returns {Generator<void, void>} yields between rows
   */
  *merge(order, quantiles, rule) {
    if (!isSame(quantiles, this.#wanted) || rule !== this.#rule) this.#quantiles = [];
    this.#rule = rule;
    this.#wanted = [...quantiles];
    for (const row of order) {
      const contributions = this.#contributions[row] ?? [];
      const key = contributions.flatMap(({ workerId, digest }) => [
        workerId,
        'version' in digest ? digest.version : NaN,
      ]);
      const previous = this.#quantiles[row];
      const hasVersions = contributions.every(({ digest }) => 'version' in digest);
      if (hasVersions && previous !== undefined && isSame(previous.key, key)) continue;
      const values = Float64Array.from(
        rule === 'sum' ? this.#quantilesOf(contributions) : this.#quantilesByRule(contributions, rule),
      );
      this.#quantiles[row] = { key, values };
      yield;
    }
  }

  /** @param {Contribution[]} contributions */
  #quantilesOf(contributions) {
    const centroids = contributions.flatMap(({ digest }) =>
      'centroids' in digest ? [digest.centroids] : [],
    );
    if (centroids.length === contributions.length) {
      const merged = mergeDigests(centroids);
      return this.#wanted.map(quantile => quantileOf(merged, quantile));
    }
    // Workers with prom-client send no digests.
    return this.#wanted.map(quantile => {
      const weighted = contributions
        .map(({ digest, weight }) => ({ value: quantileFrom(digest, quantile), weight }))
        .filter(({ value, weight }) => weight > 0 && !Number.isNaN(value));
      return weighted.length === 0 ? 0 : meanQuantile(weighted);
    });
  }

  /**
   * @param {Contribution[]} contributions
   * @param {string} rule
   */
  #quantilesByRule(contributions, rule) {
    return this.#wanted.map(quantile => {
      const values = contributions
        .map(({ digest }) => quantileFrom(digest, quantile))
        .filter(value => !Number.isNaN(value));
      return values.length === 0 ? NaN : aggregated(rule, values);
    });
  }
}

/**
 * @param {SourceDigest | undefined} digest
 * @param {number} quantile
 * @returns {number} NaN if there is no such quantile
 */
function quantileFrom(digest, quantile) {
  if (digest === undefined) return NaN;
  return 'centroids' in digest
    ? quantileOf(digest.centroids, quantile)
    : (digest.quantiles.get(quantile) ?? NaN);
}

module.exports = { FamilyQuantiles, quantileFrom };
