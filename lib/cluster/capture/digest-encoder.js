'use strict';

// Turns the digests of a worker's summaries into plain numbers, each again only after it has changed. Takes 20-50 µs a
// digest, so a thousand of them are encoded in slices that let the worker's requests through; and laid side by side, so
// that the capture has one piece of memory to write and 5 MB less to gather.

const { centroidsOf } = require('../../metric/observations');
const { runInSlices } = require('../../event-loop/slices');

/** @typedef {import('../../exposition/live-family').MetricView} MetricView */

const SLICE_MILLISECONDS = 0.3;

/**
 * `version` is the digest's, `number` that of the encoding: another digest of the same version has another number.
 *
 * @typedef {{digest: object, version: number, number: number, observations: number, centroids: Float64Array}} Encoded
 */

/**
 * All digests of a table one after the other, by rising row. `encoded` by row: what is in it.
 *
 * @typedef {{encoded: Encoded[], flat: Float64Array}} Laid
 */

class DigestEncoder {
  /** @type {WeakMap<object, Encoded[]>} by table: by row */
  #encoded = new WeakMap();
  /** @type {WeakMap<object, Laid>} by table, as of the last prepare() */
  #laid = new WeakMap();
  #nextNumber = 1;

  /**
   * Encodes what has changed, with a rest whenever a slice is used up.
   *
   * @param {MetricView[]} views
   */
  async prepare(views) {
    await runInSlices(this.#prepareTables(views), SLICE_MILLISECONDS);
  }

  /**
   * @param {MetricView[]} views
   * @returns {Generator<void>} yields where others may have the loop
   */
  *#prepareTables(views) {
    for (const view of views) if (view.digestOf !== undefined) yield* this.#prepareTable(view);
  }

  /**
   * @param {MetricView} view
   * @returns {Generator<void>} yields where others may have the loop
   */
  *#prepareTable(view) {
    const { table } = view;
    const before = this.#nextNumber;
    /** @type {Encoded[]} */
    const encoded = [];
    for (const row of [...table.liveRows()]) {
      // A row may have been removed while we rested.
      if (row < table.rowCount && table.isLive(row)) encoded[row] = this.#centroidsOf(view, row);
      yield;
    }
    const laid = this.#laid.get(table);
    const isSame =
      laid !== undefined && this.#nextNumber === before && laid.encoded.length === encoded.length;
    if (isSame && encoded.every((entry, row) => entry === laid.encoded[row])) return;
    const flat = new Float64Array(encoded.reduce((sum, { centroids }) => sum + centroids.length, 0));
    let length = 0;
    for (const entry of encoded) {
      if (entry === undefined) continue;
      const { centroids } = entry;
      flat.set(centroids, length);
      // Not kept twice.
      entry.centroids = flat.subarray(length, length + centroids.length);
      length += centroids.length;
      yield;
    }
    this.#laid.set(table, { encoded, flat });
  }

  /**
   * All digests of a summary. One that was observed since prepare() is as it was then, which illustrates no less: of a
   * thousand busy summaries each would be encoded again here, in one go.
   *
   * @param {MetricView} view
   * @param {boolean} isLast whether these are the last ones: then each is as it is now
   * @returns {import('../wire/snapshot-encoder').EncodedDigests | undefined} undefined for what is no summary
   */
  digestsOf(view, isLast) {
    if (view.digestOf === undefined) return undefined;
    const { table } = view;
    const index = new Float64Array(table.rowCount * 2);
    const laid = this.#laid.get(table);
    /** @type {Float64Array[]} */
    const centroids = [];
    let isLaid = laid !== undefined;
    let laidRows = 0;
    for (let row = 0; row < table.rowCount; row++) {
      if (!table.isLive(row)) {
        // One of those that were laid side by side has gone.
        if (laid?.encoded[row] !== undefined) isLaid = false;
        continue;
      }
      const encoded = (isLast ? undefined : this.#recentOf(view, row)) ?? this.#centroidsOf(view, row);
      index[row * 2] = encoded.centroids.length / 2;
      index[row * 2 + 1] = encoded.number;
      centroids.push(encoded.centroids);
      if (laid === undefined || row >= laid.encoded.length) continue;
      laidRows++;
      if (laid.encoded[row] !== encoded) isLaid = false;
    }
    // Rows that are new since come after the others.
    if (laid === undefined || !isLaid) return { index, centroids };
    return { index, centroids: [laid.flat, ...centroids.slice(laidRows)] };
  }

  /**
   * @param {MetricView} view
   * @param {number} row
   * @returns {Encoded | undefined} as it was encoded last, unless it was reset since
   */
  #recentOf(view, row) {
    const known = this.#encoded.get(view.table)?.[row];
    if (known === undefined || known.digest !== view.digestOf?.(row)) return undefined;
    return observationsOf(view, row) >= known.observations ? known : undefined;
  }

  /**
   * @param {MetricView} view
   * @param {number} row
   * @returns {Encoded}
   */
  #centroidsOf(view, row) {
    let rows = this.#encoded.get(view.table);
    if (rows === undefined) {
      rows = [];
      this.#encoded.set(view.table, rows);
    }
    const digest = /** @type {NonNullable<MetricView['digestOf']>} */ (view.digestOf)(row);
    const slices = digest.slices(); // may begin a new slice of the window, which changes the version
    const known = rows[row];
    if (known !== undefined && known.digest === digest && known.version === digest.version) return known;
    const number = this.#nextNumber++;
    const observations = observationsOf(view, row);
    const { version } = digest;
    return (rows[row] = { digest, version, number, observations, centroids: centroidsOf(slices) });
  }
}

/**
 * @param {MetricView} view of a summary, whose second number is its count
 * @param {number} row
 */
function observationsOf({ table }, row) {
  return table.pageOf(row)[table.offsetOf(row) + 1];
}

module.exports = { DigestEncoder };
