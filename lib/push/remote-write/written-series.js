'use strict';

// Turns families into requests, and remembers which series the receiver has: one that is no longer there ends
// with a stale marker, so queries do not show its last value for five more minutes.

const { takesLong } = require('../../exposition/text-format');
const { sampleReader } = require('../../exposition/family-samples');
const { isValidMetricName } = require('../../registry/names');
const { LabelRows, labelOf, labelsOfSeries } = require('./label-rows');
const { newRequest } = require('./write-request');
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
/** @typedef {import('./label-rows').SampleName} SampleName */
/** @typedef {import('./write-request').Protocol} Protocol */
/** @typedef {import('./write-request').Metadata} Metadata */
/** @typedef {import('./write-request').SentExemplar} SentExemplar */

/** @typedef {{row: Row, name: SampleName}} Series */
/** @typedef {{body: Buffer, samples: number, ended: Series[]}} Request `body`: compressed */

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
  /** @type {Map<string, SampleName>} by name and marker */
  #names = new Map();
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

    /**
     * @param {Row | undefined} row
     * @param {SampleName} name
     * @param {number} value
     * @param {Exemplar | undefined | null} exemplar
     */
    const add = (row, name, value, exemplar) => {
      const last = row && name.series.get(row);
      if (row === undefined || last === number) {
        dropped++;
        return;
      }
      if (last === undefined) row.series++;
      name.series.set(row, number);
      samples++;
      const labels = labelsOfSeries(row, name);
      const sample = { labels, value, exemplar: exemplar ? sentExemplar(exemplar) : undefined };
      for (const writer of writers) writer.request.add(sample, metadata);
    };

    // A sample of a custom metric object may consist of anything.
    const onUnreadable = (/** @type {unknown} */ error) => {
      dropped++;
      reportUnreadable(error);
    };

    for (const family of families) {
      /** @type {(row: number) => void} */
      let read;
      try {
        metadata = {
          name: format.familyName(String(family.name), family.type),
          help: String(family.help),
          type: String(family.type),
        };
        read = this.#reader(family, format, add);
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
    const ended = yield* this.#endOthers(number, writers);
    yield* completeAll(writers, 1);
    const requests = new Map(writers.map(writer => [writer.protocol, writer.requests]));
    return { requests, samples: samples + ended, dropped };
  }

  /**
   * Forgets series whose stale marker was received.
   *
   * @param {Series[]} ended
   */
  forget(ended) {
    for (const { row, name } of ended) this.#rows.drop(row, name);
  }

  /**
   * @param {Family} family
   * @param {Format} format
   * @param {(row: Row | undefined, name: SampleName, value: number, exemplar?: Exemplar | null) => void} add
   *   called for each sample of a row; `row`: undefined if Prometheus would refuse the series
   */
  #reader(family, format, add) {
    // The samples of a row have their labels in common, but for a default label called `le`.
    /** @type {Row | undefined} */
    let row;
    let rowNumber = -1;
    let isMarked = false;
    return sampleReader(family, format, {
      nameOf: (name, marker) => this.#nameOf(name, marker),
      onSample: (name, familyRow, value, exemplar) => {
        if (familyRow !== rowNumber || name.isMarked !== isMarked) {
          rowNumber = familyRow;
          isMarked = name.isMarked;
          row = name.isValid ? this.#rows.rowOf(family, familyRow, isMarked) : undefined;
        }
        add(row, name, value, exemplar);
      },
    });
  }

  /**
   * Adds the stale markers of series that this push does not have.
   *
   * @param {number} number of the push
   * @param {RequestWriter[]} writers
   * @returns {Generator<void, number>} how many there are
   */
  *#endOthers(number, writers) {
    let ended = 0;
    let compared = 0;
    for (const name of this.#names.values()) {
      for (const [row, last] of name.series) {
        if (++compared % SERIES_PER_STEP === 0) yield;
        if (last === number) continue;
        if (number - last > MARKERS_PER_SERIES) {
          this.#rows.drop(row, name);
          continue;
        }
        ended++;
        const labels = labelsOfSeries(row, name);
        for (const { request } of writers) {
          request.add({ labels, value: undefined }, undefined);
          request.ended.push({ row, name });
        }
        if (ended % SAMPLES_PER_STEP === 0) yield* completeAll(writers, REQUEST_BYTES);
      }
    }
    return ended;
  }

  /**
   * @param {string} name of the metric
   * @param {import('../../exposition/label-text').LabelPair | undefined} marker
   * @returns {SampleName}
   */
  #nameOf(name, marker) {
    const key = `${name} ${marker ?? ''}`;
    let known = this.#names.get(key);
    if (known === undefined) {
      const labels = [labelOf('__name__', name)];
      if (marker !== undefined) labels.push(labelOf(...marker));
      known = { labels, isMarked: marker !== undefined, isValid: isValidMetricName(name), series: new Map() };
      this.#names.set(key, known);
    }
    return known;
  }
}

/** Requests of one protocol. */
class RequestWriter {
  #timestamp;

  /**
   * @param {Protocol} protocol
   * @param {number} timestamp milliseconds since the epoch
   */
  constructor(protocol, timestamp) {
    this.protocol = protocol;
    this.#timestamp = timestamp;
    /** Not complete yet. */
    this.request = newRequest(protocol, timestamp);
    /** @type {Request[]} */
    this.requests = [];
  }

  /**
   * Completes the request if it is long enough.
   *
   * @param {number} bytes
   * @returns {Generator<void, void>}
   */
  *complete(bytes) {
    const { parts, length, samples, ended } = this.request;
    if (samples === 0 || length < bytes) return;
    this.requests.push({ body: yield* compressSteps(parts), samples, ended });
    this.request = newRequest(this.protocol, this.#timestamp);
  }
}

/**
 * @param {Exemplar} exemplar
 * @returns {SentExemplar | undefined} undefined if it cannot be read: its sample is sent without it
 */
function sentExemplar(exemplar) {
  try {
    const { labelSet, value, timestamp } = exemplar;
    const labels = Object.entries(labelSet ?? {}).map(([name, text]) => labelOf(name, String(text)));
    const milliseconds = timestamp > 0 && Number.isFinite(timestamp) ? Math.round(timestamp * 1000) : 0;
    return { labels, value: Number(value), timestamp: milliseconds };
  } catch (error) {
    reportUnreadable(error);
  }
}

/** @param {unknown} error */
function reportUnreadable(error) {
  debug('remote write leaves out what cannot be read: %s', textOf(error));
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
