'use strict';

// Runs in a thread that takes part, on its event loop. Sends the digests of summaries and the exemplars that
// have changed, because these are not in shared memory. All of a thread's can take long, so this is done in
// slices, with a message for each few of them.

const { viewOf } = require('../registry/metric-view');
const { centroidsOf } = require('../metric/observations');

/** Sending so many takes 0.2 ms. */
const MOST_IN_MESSAGE = 64;
/** Looking at so many that have not changed takes 0.01 ms. */
const CHECKS_PER_STEP = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * @typedef {object} Source
 * @property {any} metric
 * @property {{digest: object, version: number}[]} digests by row: what was sent
 * @property {number} version of the exemplars when they were last looked at
 * @property {import('../metric/exemplar').Exemplar[]} exemplars by row and column: what was sent
 */

class ExtrasPublisher {
  #send;
  /** @type {Map<number, Source>} by number of the metric */
  #sources = new Map();
  /** @type {unknown[]} */
  #digests = [];
  /** @type {unknown[]} */
  #exemplars = [];

  /** @param {(message: object) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /**
   * @param {number} number of the metric
   * @param {any} metric that has digests or exemplars
   */
  add(number, metric) {
    this.#sources.set(number, { metric, digests: [], version: 0, exemplars: [] });
  }

  /** @param {number} number of a metric */
  drop(number) {
    this.#sources.delete(number);
  }

  /** Drops all metrics, and what was not sent yet. */
  clear() {
    this.#sources.clear();
    this.#digests = [];
    this.#exemplars = [];
  }

  /** @returns {Generator<void>} yields where a slice may end */
  *sendChanged() {
    for (const [number, source] of this.#sources) {
      for (const steps = this.#addChanged(number, source); !steps.next().done;) {
        if (this.#digests.length + this.#exemplars.length >= MOST_IN_MESSAGE) this.#flush();
        yield;
        // If its rows have got new numbers meanwhile, it is published as a new metric.
        if (this.#sources.get(number) !== source) break;
      }
    }
    this.#flush();
  }

  #flush() {
    const [digests, exemplars] = [this.#digests, this.#exemplars];
    if (digests.length + exemplars.length === 0) return;
    this.#digests = [];
    this.#exemplars = [];
    this.#send({ extras: { digests, exemplars } });
  }

  /**
   * @param {number} number
   * @param {Source} source
   * @returns {Generator<void>}
   */
  *#addChanged(number, source) {
    const view = viewOf(source.metric);
    if (view?.digestOf !== undefined) yield* this.#addDigests(number, source, view);
    if (view?.exemplars !== undefined) yield* this.#addExemplars(number, source, view.exemplars);
  }

  /**
   * @param {number} number
   * @param {Source} source
   * @param {MetricView} view of a summary
   * @returns {Generator<void>}
   */
  *#addDigests(number, source, view) {
    const { table } = view;
    const digestOf = /** @type {NonNullable<MetricView['digestOf']>} */ (view.digestOf);
    view.beforeRead?.();
    let checks = 0;
    for (const row of [...table.liveRows()]) {
      if (++checks % CHECKS_PER_STEP === 0) yield;
      // It may have been removed since the last slice.
      if (row >= table.rowCount || !table.isLive(row)) continue;
      const digest = digestOf(row);
      // May begin a new slice of the window, which changes the version.
      const slices = digest.slices();
      const { version } = digest;
      const sent = source.digests[row];
      if (sent?.digest === digest && sent.version === version) continue;
      source.digests[row] = { digest, version };
      this.#digests.push([number, row, centroidsOf(slices)]);
      yield;
    }
  }

  /**
   * @param {number} number
   * @param {Source} source
   * @param {import('../metric/exemplar').Exemplars} exemplars
   * @returns {Generator<void>}
   */
  *#addExemplars(number, source, exemplars) {
    if (exemplars.version === source.version) return;
    source.version = exemplars.version;
    let checks = 0;
    for (const { row, column, slot } of exemplars.slots()) {
      if (++checks % CHECKS_PER_STEP === 0) yield;
      const { exemplar } = slot;
      const place = row * exemplars.width + column;
      if (source.exemplars[place] === exemplar) continue;
      source.exemplars[place] = exemplar;
      const { labelSet, value, timestamp } = exemplar;
      const labels = Object.keys(labelSet).map(name => [name, String(labelSet[name])]);
      this.#exemplars.push([number, row, column, labels, value, timestamp]);
      yield;
    }
  }
}

module.exports = { ExtrasPublisher };
