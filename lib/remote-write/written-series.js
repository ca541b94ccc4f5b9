'use strict';

// Turns families into requests, and remembers which series the receiver has: one that is no longer there ends
// with a stale marker, so queries do not show its last value for five more minutes.

const { familyName, sampleReader } = require('../exposition/family-samples');
const { joinLabels, labelPair, parseLabels } = require('../exposition/label-text');
const { isValidMetricName } = require('../registry/names');
const { WriteRequest1, WriteRequest2 } = require('./write-request');
const { compressSteps } = require('./snappy');

// Receivers limit what they decode, and refuse the whole request if one sample is refused.
const REQUEST_BYTES = 2 ** 20;

const SAMPLES_PER_STEP = 64;
const SERIES_PER_STEP = 4096;

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/label-text').Label} Label */
/** @typedef {import('./encoded-labels').Row} Row */
/** @typedef {import('./encoded-labels').SampleName} SampleName */
/** @typedef {import('./write-request').Protocol} Protocol */
/** @typedef {import('./write-request').Metadata} Metadata */
/** @typedef {import('./write-request').SeriesSample} SeriesSample */

/** @typedef {{body: Buffer, samples: number}} Request compressed */

/**
 * All series of a metric name, and for buckets and quantiles of a marker.
 *
 * @typedef {object} SeriesOfName
 * @property {string} name
 * @property {string} markers `le` or `quantile` as label text; '' if there is none
 * @property {Map<string, number>} pushes by the text of all other labels, sorted: the last push that has them
 */

/** @typedef {SampleName & {series: SeriesOfName | undefined}} KnownName `series`: undefined if not valid */

/** @typedef {Row & {key: string, markers: string}} KnownRow `key`: its labels as text, without `markers` */

/**
 * What one push sends.
 *
 * @typedef {object} Push
 * @property {Map<Protocol, Request[]>} requests by protocol: both, as long as it is not known which one the
 *   receiver has
 * @property {number} samples how many there are, stale markers included
 * @property {number} dropped how many samples are left out: series that are not valid, or there twice
 * @property {{pushes: Map<string, number>, key: string}[]} ended series that have a stale marker
 */

class WrittenSeries {
  #labels;
  /** @type {Map<string, SeriesOfName>} by name and markers */
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
    const writers = protocols.map(protocol => new RequestWriter(protocol, timestamp));
    let samples = 0;
    let dropped = 0;
    /** @type {Metadata | undefined} */
    let metadata;

    /** @type {KnownRow | undefined} of the last sample */
    let row;
    /** @type {string | undefined} */
    let rowText;
    /** @type {string | undefined} */
    let rowMarker;

    /** @type {import('../exposition/family-samples').SampleSink<KnownName>} */
    const sink = {
      nameOf: (name, marker) => this.#nameOf(name, marker),
      onSample: (name, labels, value, exemplar) => {
        if (labels !== rowText || name.marker?.name !== rowMarker) {
          rowText = labels;
          rowMarker = name.marker?.name;
          row = this.#rowOf(labels, rowMarker);
        }
        const pushes = row && this.#pushesOf(name, row);
        if (row === undefined || pushes === undefined || pushes.get(row.key) === number) {
          dropped++;
          return;
        }
        pushes.set(row.key, number);
        samples++;
        const sample = { row, name, value, exemplar };
        for (const writer of writers) writer.add(sample, metadata);
      },
    };

    for (const family of families) {
      metadata = {
        name: familyName(family, openMetrics),
        help: String(family.help),
        type: String(family.type),
      };
      const read = sampleReader(family, openMetrics, sink);
      // A row of a summary computes quantiles, and a custom metric's values may be any objects.
      const { kind } = family.layout;
      const samplesPerStep = kind === 'summary' || kind === 'samples' ? 1 : SAMPLES_PER_STEP;
      let next = samples + dropped + samplesPerStep;
      for (const row of family.rows()) {
        read(row);
        if (samples + dropped < next) continue;
        next = samples + dropped + samplesPerStep;
        yield* completeAll(writers, REQUEST_BYTES);
      }
      yield;
    }

    /** @type {Push['ended']} */
    const ended = [];
    let compared = 0;
    for (const { name, markers, pushes } of this.#series.values()) {
      const sampleName = { name: labelOf('__name__', name), marker: undefined };
      for (const [key, last] of pushes) {
        if (++compared % SERIES_PER_STEP === 0) yield;
        if (last === number) continue;
        ended.push({ pushes, key });
        const labels = /** @type {Label[]} */ (parseLabels(joinLabels(key, markers)));
        const row = rowFrom(labels.sort(byName), undefined);
        const marker = { row, name: sampleName, value: undefined, exemplar: undefined };
        for (const writer of writers) writer.add(marker, undefined);
        if (ended.length % SAMPLES_PER_STEP === 0) yield* completeAll(writers, REQUEST_BYTES);
      }
    }
    yield* completeAll(writers, 1);
    const requests = new Map(writers.map(writer => [writer.protocol, writer.requests]));
    return { requests, samples: samples + ended.length, dropped, ended };
  }

  /**
   * Forgets series whose stale marker was received.
   *
   * @param {Push['ended']} ended
   */
  forget(ended) {
    for (const { pushes, key } of ended) pushes.delete(key);
    for (const [text, { pushes }] of this.#series) if (pushes.size === 0) this.#series.delete(text);
  }

  /**
   * @param {string} name of the metric
   * @param {Label | undefined} marker
   * @returns {KnownName}
   */
  #nameOf(name, marker) {
    const series = isValidMetricName(name) ? this.#seriesOf(name, marker?.pair ?? '') : undefined;
    return { name: labelOf('__name__', name), marker, series };
  }

  /**
   * @param {string} name
   * @param {string} markers
   * @returns {SeriesOfName}
   */
  #seriesOf(name, markers) {
    const text = `${name} ${markers}`;
    let series = this.#series.get(text);
    if (series === undefined) {
      series = { name, markers, pushes: new Map() };
      this.#series.set(text, series);
    }
    return series;
  }

  /**
   * @param {KnownName} name
   * @param {KnownRow} row
   * @returns {Map<string, number> | undefined} undefined if the name is not valid
   */
  #pushesOf({ name, marker, series }, { markers }) {
    if (series === undefined || markers === '') return series?.pushes;
    // The labels of a gauge may make it the same series as a histogram's bucket.
    const all = marker === undefined ? markers : [markers, marker.pair].sort().join();
    return this.#seriesOf(name.value, all).pushes;
  }

  /**
   * @param {string} text of labels
   * @param {string | undefined} marker name of the label that the sample has in addition
   * @returns {KnownRow | undefined} undefined if Prometheus would refuse the labels
   */
  #rowOf(text, marker) {
    const labels = parseLabels(text.toWellFormed());
    if (labels === undefined) return undefined;
    const own = labels.length;
    for (const label of this.#labels)
      if (label.name !== marker && !hasName(labels, own, label.name)) labels.push(label);
    labels.sort(byName);
    for (let i = 0; i < labels.length; i++) {
      const { name } = labels[i];
      if (name === '__name__' || name === marker || name === labels[i + 1]?.name) return undefined;
    }
    return rowFrom(labels.every(hasValue) ? labels : labels.filter(hasValue), marker);
  }
}

/**
 * @param {Label[]} labels sorted by name
 * @param {string | undefined} marker name of the label that the sample has in addition
 * @returns {KnownRow}
 */
function rowFrom(labels, marker) {
  const row = { labels, nameAt: 0, markerAt: 0, key: '', markers: '' };
  for (const { name, pair } of labels) {
    if (name < '__name__') row.nameAt++;
    if (marker === undefined || name < marker) row.markerAt++;
    if (name === 'le' || name === 'quantile') row.markers = joinLabels(row.markers, pair);
    else row.key = joinLabels(row.key, pair);
  }
  return row;
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

/** Requests of one protocol. */
class RequestWriter {
  #request;
  #timestamp;
  #samples = 0;

  /**
   * @param {Protocol} protocol
   * @param {number} timestamp milliseconds since the epoch
   */
  constructor(protocol, timestamp) {
    this.protocol = protocol;
    this.#timestamp = timestamp;
    this.#request = newRequest(protocol, timestamp);
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
    this.#request = newRequest(this.protocol, this.#timestamp);
    this.#samples = 0;
  }
}

/**
 * @param {Protocol} protocol
 * @param {number} timestamp milliseconds since the epoch
 */
function newRequest(protocol, timestamp) {
  return protocol === '2.0' ? new WriteRequest2(timestamp) : new WriteRequest1(timestamp);
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
