'use strict';

// Turns families into requests, and remembers which series the receiver has: one that is no longer there ends
// with a stale marker, so queries do not show its last value for five more minutes.

const { familyName, sampleReader } = require('../exposition/family-samples');
const { labelPair, parseLabels } = require('../exposition/label-text');
const { isValidMetricName } = require('../registry/names');
const { WriteRequest1, WriteRequest2 } = require('./write-request');
const { compressSteps } = require('./snappy');

// Receivers limit what they decode, and refuse the whole request if one sample is refused.
const REQUEST_BYTES = 2 ** 20;

const ROWS_PER_STEP = 64;

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/label-text').Label} Label */
/** @typedef {import('./write-request').Protocol} Protocol */
/** @typedef {import('./write-request').Metadata} Metadata */
/** @typedef {import('./write-request').SeriesSample} SeriesSample */

/** @typedef {{body: Buffer, samples: number}} Request compressed */

/**
 * What one push sends.
 *
 * @typedef {object} Push
 * @property {Map<Protocol, Request[]>} requests by protocol: both, as long as it is not known which one the
 *   receiver has
 * @property {number} samples how many there are, stale markers included
 * @property {number} dropped how many samples are left out: series that are not valid, or there twice
 * @property {string[]} ended series that have a stale marker
 */

class WrittenSeries {
  #labels;
  /** @type {Map<string, number>} by the text of all labels, sorted: the last push that has the series */
  #series = new Map();
  #pushes = 0;

  /** @param {Record<string, string>} labels that all series get that do not have a label of that name */
  constructor(labels) {
    this.#labels = Object.entries(labels).map(([name, value]) => labelOf(name, value));
  }

  /**
   * @param {Iterable<Family>} families none: all series end
   * @param {object} options
   * @param {boolean} options.openMetrics whether names are those of OpenMetrics
   * @param {number} options.timestamp milliseconds since the epoch
   * @param {Protocol[]} options.protocols
   * @returns {Generator<void, Push>} yields where a slice may end
   */
  *push(families, { openMetrics, timestamp, protocols }) {
    const number = ++this.#pushes;
    const writers = protocols.map(protocol => new RequestWriter(protocol));
    let samples = 0;
    let dropped = 0;
    /** @type {Metadata | undefined} */
    let metadata;

    /** @type {import('../exposition/family-samples').OnSample} */
    const add = (name, text, value, exemplar) => {
      const labels = this.#labelsOf(name, text);
      const key = labels === undefined ? '' : keyOf(labels);
      if (labels === undefined || this.#series.get(key) === number) {
        dropped++;
        return;
      }
      this.#series.set(key, number);
      samples++;
      const sample = { labels, value, timestamp, exemplar };
      for (const writer of writers) writer.add(sample, metadata);
    };

    for (const family of families) {
      metadata = {
        name: familyName(family, openMetrics),
        help: String(family.help),
        type: String(family.type),
      };
      const read = sampleReader(family, openMetrics, add);
      // A row of a summary computes quantiles, and a custom metric's values may be any objects.
      const { kind } = family.layout;
      const rowsPerStep = kind === 'summary' || kind === 'samples' ? 1 : ROWS_PER_STEP;
      let rows = 0;
      for (const row of family.rows()) {
        read(row);
        if (++rows % rowsPerStep === 0) yield* completeAll(writers, REQUEST_BYTES);
      }
      yield;
    }

    /** @type {string[]} */
    const ended = [];
    for (const [key, last] of this.#series) {
      if (last === number) continue;
      ended.push(key);
      const labels = /** @type {Label[]} */ (parseLabels(key));
      const marker = { labels, value: undefined, timestamp, exemplar: undefined };
      for (const writer of writers) writer.add(marker, undefined);
      if (ended.length % ROWS_PER_STEP === 0) yield* completeAll(writers, REQUEST_BYTES);
    }
    yield* completeAll(writers, 1);
    const requests = new Map(writers.map(writer => [writer.protocol, writer.requests]));
    return { requests, samples: samples + ended.length, dropped, ended };
  }

  /**
   * Forgets series whose stale marker was received.
   *
   * @param {string[]} ended
   */
  forget(ended) {
    for (const key of ended) this.#series.delete(key);
  }

  /**
   * @param {string} name of the metric
   * @param {string} text
   * @returns {Label[] | undefined} sorted by name, without empty values; undefined if Prometheus would
   *   refuse them
   */
  #labelsOf(name, text) {
    const labels = isValidMetricName(name) ? parseLabels(text.toWellFormed()) : undefined;
    if (labels === undefined) return undefined;
    const own = labels.length;
    for (const label of this.#labels) if (!hasName(labels, own, label.name)) labels.push(label);
    labels.push(labelOf('__name__', name));
    labels.sort(byName);
    for (let i = 1; i < labels.length; i++) if (labels[i].name === labels[i - 1].name) return undefined;
    return labels.every(hasValue) ? labels : labels.filter(hasValue);
  }
}

/**
 * @param {string} name
 * @param {string} value
 * @returns {Label}
 */
function labelOf(name, value) {
  return { name, value, pair: labelPair(name, value) };
}

/**
 * @param {Label[]} labels
 * @param {number} count how many of them to search
 * @param {string} name
 */
function hasName(labels, count, name) {
  for (let i = 0; i < count; i++) if (labels[i].name === name) return true;
  return false;
}

/**
 * @param {Label} a
 * @param {Label} b
 */
function byName(a, b) {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** @param {Label} label */
function hasValue({ value }) {
  return value !== '';
}

/**
 * @param {Label[]} labels
 * @returns {string} equal for equal labels; parseLabels() reads it
 */
function keyOf(labels) {
  let key = labels[0].pair;
  for (let i = 1; i < labels.length; i++) key += ',' + labels[i].pair;
  return key;
}

/** Requests of one protocol. */
class RequestWriter {
  #request;
  #samples = 0;

  /** @param {Protocol} protocol */
  constructor(protocol) {
    this.protocol = protocol;
    this.#request = newRequest(protocol);
    /** @type {Request[]} */
    this.requests = [];
  }

  /**
   * @param {SeriesSample} sample
   * @param {Metadata | undefined} metadata
   */
  add(sample, metadata) {
    this.#request.add(sample, metadata);
    this.#samples++;
  }

  /**
   * Completes the request if it is long enough.
   *
   * @param {number} bytes
   * @returns {Generator<void, void>}
   */
  *complete(bytes) {
    if (this.#samples === 0 || this.#request.length < bytes) return;
    const body = yield* compressSteps(this.#request.parts);
    this.requests.push({ body, samples: this.#samples });
    this.#request = newRequest(this.protocol);
    this.#samples = 0;
  }
}

/** @param {Protocol} protocol */
function newRequest(protocol) {
  return protocol === '2.0' ? new WriteRequest2() : new WriteRequest1();
}

/**
 * @param {RequestWriter[]} writers
 * @param {number} bytes of a request that is long enough
 * @returns {Generator<void, void>}
 */
function* completeAll(writers, bytes) {
  for (const writer of writers) yield* writer.complete(bytes);
  yield;
}

module.exports = { WrittenSeries };
