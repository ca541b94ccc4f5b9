'use strict';

// Turns families into requests, and remembers which series the receiver has: one that is no longer there ends
// with a stale marker, so queries do not show its last value for five more minutes.

const { takesLong } = require('../../exposition/text-format');
const { sampleReader } = require('../../exposition/family-samples');
const { isValidMetricName } = require('../../registry/names');
const { LabelRows, labelOf, rowOfKey } = require('./label-rows');
const { WriteRequest1, WriteRequest2 } = require('./write-request');
const { compressSteps } = require('./snappy');
const { debug } = require('../../options/debug-log');
const { textOf } = require('../../options/thrown');

// Receivers limit what they decode, and refuse the whole request if one sample is refused.
const REQUEST_BYTES = 2 ** 20;

const SAMPLES_PER_STEP = 64;
const SERIES_PER_STEP = 4096;

/**
 * In how many pushes a series that has ended has a stale marker, if none is accepted. After five minutes
 * queries stop showing it in any case.
 */
const MARKERS_PER_SERIES = 20;

/** @typedef {import('../../exposition/text-format').Family} Family */
/** @typedef {import('../../exposition/text-format').Exemplar} Exemplar */
/** @typedef {import('../../exposition/formats').Format} Format */
/** @typedef {import('./label-rows').Row} Row */
/** @typedef {import('./write-request').SampleName} SampleName */
/** @typedef {import('./write-request').Protocol} Protocol */
/** @typedef {import('./write-request').Metadata} Metadata */
/** @typedef {import('./write-request').SeriesSample} SeriesSample */

/** @typedef {{pushes: Map<string, number>, key: string}} Ended a series that has ended */
/** @typedef {{body: Buffer, samples: number, ended: Ended[]}} Request `body`: compressed */

/**
 * All series of a metric name, and for buckets and quantiles of a marker.
 *
 * @typedef {object} SeriesOfName
 * @property {string} name
 * @property {string} markers keys of `le` and `quantile`; '' if there is none
 * @property {Map<string, number>} pushes by the keys of all other labels, sorted: the last push that has them
 */

/** @typedef {SampleName & {series: SeriesOfName | undefined}} KnownName `series`: undefined if not valid */

/**
 * What one push sends.
 *
 * @typedef {object} Push
 * @property {Map<Protocol, Request[]>} requests by protocol: both, as long as it is not known which one the
 *   receiver has
 * @property {number} samples how many there are, stale markers included
 * @property {number} dropped how many samples are left out: series that are not valid or not
 *   readable, or there twice
 */

class WrittenSeries {
  #rows;
  /** @type {Map<string, SeriesOfName>} by name and markers */
  #series = new Map();
  #pushes = 0;

  /** @param {Record<string, string>} labels that all series get that do not have a label of that name */
  constructor(labels) {
    this.#rows = new LabelRows(labels);
  }

  /**
   * @param {Iterable<Family>} families none: all series end
   * @param {object} options
   * @param {Format} options.format whose names samples have
   * @param {number} options.timestamp milliseconds since the epoch
   * @param {Protocol[]} options.protocols
   * @returns {Generator<void, Push>} yields where a slice may end
   */
  *push(families, { format, timestamp, protocols }) {
    const number = ++this.#pushes;
    const writers = protocols.map(protocol => new RequestWriter(protocol, timestamp));
    let samples = 0;
    let dropped = 0;
    /** @type {Metadata | undefined} */
    let metadata;

    /** @type {Family} */
    let family;
    /** @type {Row | undefined} of the last sample */
    let row;
    let rowNumber = -1;
    /** @type {string | undefined} */
    let rowMarker;

    /** @type {import('../../exposition/family-samples').SampleSink<KnownName>} */
    const sink = {
      nameOf: (name, marker) => this.#nameOf(name, marker),
      onSample: (name, familyRow, value, exemplar) => {
        if (familyRow !== rowNumber || name.marker?.name !== rowMarker) {
          rowNumber = familyRow;
          rowMarker = name.marker?.name;
          row = this.#rows.rowOf(family, familyRow, rowMarker);
        }
        const pushes = row && this.#pushesOf(name, row);
        if (row === undefined || pushes === undefined || pushes.get(row.key) === number) {
          dropped++;
          return;
        }
        pushes.set(row.key, number);
        samples++;
        const sample = { row, name, value, exemplar: exemplar && readableExemplar(exemplar) };
        for (const writer of writers) writer.add(sample, metadata);
      },
    };

    // A sample of a custom metric object may consist of anything.
    const onUnreadable = (/** @type {unknown} */ error) => {
      dropped++;
      reportUnreadable(error);
    };

    for (family of families) {
      rowNumber = -1;
      /** @type {(row: number) => void} */
      let read;
      try {
        metadata = {
          name: format.familyName(String(family.name), family.type),
          help: String(family.help),
          type: String(family.type),
        };
        read = sampleReader(family, format, sink);
      } catch (error) {
        onUnreadable(error);
        continue;
      }
      const samplesPerStep = takesLong(family) ? 1 : SAMPLES_PER_STEP;
      let next = samples + dropped + samplesPerStep;
      for (const row of family.rows()) {
        try {
          read(row);
        } catch (error) {
          onUnreadable(error);
        }
        if (samples + dropped < next) continue;
        next = samples + dropped + samplesPerStep;
        yield* completeAll(writers, REQUEST_BYTES);
      }
      yield;
    }

    let ended = 0;
    let compared = 0;
    for (const { name, markers, pushes } of this.#series.values()) {
      const sampleName = { name: labelOf('__name__', name), marker: undefined };
      for (const [key, last] of pushes) {
        if (++compared % SERIES_PER_STEP === 0) yield;
        if (last === number) continue;
        if (number - last > MARKERS_PER_SERIES) {
          pushes.delete(key);
          continue;
        }
        ended++;
        const row = rowOfKey(key, markers);
        const marker = { row, name: sampleName, value: undefined, exemplar: undefined };
        for (const writer of writers) writer.addMarker(marker, { pushes, key });
        if (ended % SAMPLES_PER_STEP === 0) yield* completeAll(writers, REQUEST_BYTES);
      }
    }
    this.#rows.clean();
    yield* completeAll(writers, 1);
    const requests = new Map(writers.map(writer => [writer.protocol, writer.requests]));
    return { requests, samples: samples + ended, dropped };
  }

  /**
   * Forgets series whose stale marker was received.
   *
   * @param {Ended[]} ended
   */
  forget(ended) {
    for (const { pushes, key } of ended) pushes.delete(key);
    for (const [text, { pushes }] of this.#series) if (pushes.size === 0) this.#series.delete(text);
  }

  /**
   * @param {string} name of the metric
   * @param {import('../../exposition/label-text').LabelPair | undefined} pair
   * @returns {KnownName}
   */
  #nameOf(name, pair) {
    const marker = pair && labelOf(...pair);
    const series = isValidMetricName(name) ? this.#seriesOf(name, marker?.key ?? '') : undefined;
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
   * @param {Row} row
   * @returns {Map<string, number> | undefined} undefined if the name is not valid
   */
  #pushesOf({ name, marker, series }, { markers }) {
    if (series === undefined || markers === '') return series?.pushes;
    // The labels of a gauge may make it the same series as a histogram's bucket.
    const all = marker === undefined ? markers : [markers, marker.key].sort().join();
    return this.#seriesOf(name.value, all).pushes;
  }
}

/** Requests of one protocol. */
class RequestWriter {
  #request;
  #timestamp;
  #samples = 0;
  /** @type {Ended[]} */
  #ended = [];

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
   * @param {SeriesSample} marker
   * @param {Ended} ended whose stale marker it is
   */
  addMarker(marker, ended) {
    this.add(marker, undefined);
    this.#ended.push(ended);
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
    this.requests.push({ body, samples: this.#samples, ended: this.#ended });
    this.#request = newRequest(this.protocol, this.#timestamp);
    this.#samples = 0;
    this.#ended = [];
  }
}

/**
 * @param {Exemplar} exemplar
 * @returns {Exemplar | undefined} whose values are texts and numbers; undefined if it cannot be read: its
 *   sample is sent without it
 */
function readableExemplar(exemplar) {
  try {
    const { labelSet, value, timestamp } = exemplar;
    const labels = Object.entries(labelSet ?? {}).map(([name, label]) => [name, String(label)]);
    return { labelSet: Object.fromEntries(labels), value: Number(value), timestamp: Number(timestamp) };
  } catch (error) {
    reportUnreadable(error);
  }
}

/** @param {unknown} error */
function reportUnreadable(error) {
  debug('remote write leaves out what cannot be read: %s', textOf(error));
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
