'use strict';

// Reads the samples of a push, and remembers which series the receiver has: one that is no longer there ends
// with a stale marker, so queries do not show its last value for five more minutes.

const { takesLong, valueReader } = require('../exposition/text-format');
const { isValidMetricName } = require('../registry/names');
const { kindOf, samplesOf, widthOf } = require('../series/layouts');
const { encodedHistogram } = require('./write-request');
const { LabelRows, labelOf } = require('./label-rows');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

const SAMPLES_PER_STEP = 64;
const SERIES_PER_STEP = 4096;

/** Dates are not later. */
const MOST_SECONDS = 8.64e12;

/**
 * In how many pushes a series that has ended has a stale marker, if none is accepted. After five minutes
 * queries stop showing it in any case.
 */
const MARKERS_PER_SERIES = 20;

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/text-format').Exemplar} Exemplar */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {import('../exposition/label-text').LabelPair} LabelPair */
/** @typedef {import('./label-rows').Row} Row */
/** @typedef {import('./label-rows').SampleName} SampleName */
/** @typedef {import('./write-request').Metadata} Metadata */
/** @typedef {import('./write-request').SentExemplar} SentExemplar */
/** @typedef {import('./write-request').SeriesSample} SeriesSample */

/**
 * Called for each sample of a row. `row`: undefined if Prometheus would refuse the series. See SeriesSample.
 *
 * @callback AddSample
 * @param {Row | undefined} row
 * @param {SampleName} name
 * @param {number} value
 * @param {number} start
 * @param {readonly Exemplar[]} [exemplars]
 * @param {Buffer} [histogram]
 */

class WrittenSeries {
  #rows;
  /** @type {Map<string, SampleName>} by name and marker */
  #names = new Map();
  #pushes = 0;
  #nativeHistograms;
  /** When the last push was written, seconds since the epoch. */
  #pushedAt = 0;
  /** The same of the one before: exemplars of native histograms up to then were in that. */
  #exemplarsUntil = 0;

  /**
   * @param {Record<string, string>} labels that all series get that do not have a label of that name
   * @param {boolean} nativeHistograms whether to send them; otherwise only what the text page has of them
   */
  constructor(labels, nativeHistograms) {
    this.#rows = new LabelRows(labels);
    this.#nativeHistograms = nativeHistograms;
  }

  /**
   * @param {Iterable<Family>} families none: all series end
   * @param {Format} format whose names samples have
   * @returns {Generator<void, {samples: SeriesSample[], dropped: number}>} yields where a slice may end.
   *   `samples`: stale markers included; `dropped`: how many are left out, because the series is not valid or
   *   not readable, or there twice
   */
  *push(families, format) {
    const number = ++this.#pushes;
    this.#exemplarsUntil = this.#pushedAt;
    this.#pushedAt = Date.now() / 1000;
    /** @type {SeriesSample[]} */
    const samples = [];
    let dropped = 0;
    /** @type {Metadata | undefined} */
    let metadata;

    /** @type {AddSample} */
    const add = (row, name, value, start, exemplars, histogram) => {
      const last = row && name.series.get(row);
      if (row === undefined || last === number) {
        dropped++;
        return;
      }
      const sent = exemplars?.map(sentExemplar);
      if (last === undefined) row.series++;
      name.series.set(row, number);
      samples.push({ row, name, value, start, histogram, exemplars: sent, metadata });
    };

    // A sample of a custom metric object may consist of anything.
    const onUnreadable = (/** @type {unknown} */ error) => {
      dropped++;
      debug('remote write leaves out what cannot be read: %s', textOf(error));
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
      let next = samples.length + dropped + samplesPerStep;
      for (const row of family.rows()) {
        try {
          read(row);
        } catch (error) {
          onUnreadable(error);
        }
        if (samples.length + dropped < next) continue;
        next = samples.length + dropped + samplesPerStep;
        yield;
      }
      yield;
    }
    yield* this.#endOthers(number, samples);
    return { samples, dropped };
  }

  /**
   * Forgets series whose stale marker is among samples that were received.
   *
   * @param {SeriesSample[]} samples
   */
  forgetEnded(samples) {
    for (const { row, name, value } of samples) if (value === undefined) this.#rows.drop(row, name);
  }

  /**
   * @param {Family} family
   * @param {Format} format
   * @param {AddSample} add
   * @returns {(row: number) => void}
   */
  #reader(family, format, add) {
    if (!this.#nativeHistograms || family.bucketsAt === undefined)
      return this.#sampleReader(family, format, add);
    // As of a server that scrapes classic histograms, too: they have samples if there are bounds.
    const readSamples = family.layout.marks.length > 0 ? this.#sampleReader(family, format, add) : () => {};
    const readHistogram = this.#histogramReader(family, format, add);
    return row => {
      readSamples(row);
      readHistogram(row);
    };
  }

  /**
   * @param {Family} family
   * @param {Format} format
   * @param {AddSample} add
   * @returns {(row: number) => void}
   */
  #sampleReader(family, { sampleName }, add) {
    const { type } = family;
    const { isComputed = false, marker = '' } = kindOf(family.layout);
    const familyName = String(family.name);
    const samples = samplesOf(family.layout);
    const valuesOf = valueReader(family);
    /** @type {SampleName[]} by sample */
    const names = [];
    const nameOf = (/** @type {number} */ i) => {
      const { suffix, mark } = samples[i];
      const pair = mark === undefined ? undefined : /** @type {LabelPair} */ ([marker, String(mark)]);
      return this.#nameOf(sampleName(familyName, type) + suffix, pair);
    };
    return familyRow => {
      const values = valuesOf(familyRow);
      const own = family.sampleName?.(familyRow);
      // The samples of a row have their labels in common, but for a default label called `le`.
      /** @type {Row | undefined} */
      let row;
      /** @type {boolean | undefined} */
      let isMarked;
      let start = 0;
      for (let i = 0; i < samples.length; i++) {
        const name = own ? this.#nameOf(sampleName(own, type), undefined) : (names[i] ??= nameOf(i));
        if (name.isMarked !== isMarked) {
          isMarked = name.isMarked;
          row = name.isValid ? this.#rows.rowOf(family, familyRow, isMarked) : undefined;
          // Quantiles do not count from zero.
          start = isMarked && isComputed ? 0 : startOf(family, familyRow);
        }
        const { column } = samples[i];
        const exemplar = column === undefined ? undefined : family.exemplarAt?.(familyRow, column);
        add(row, name, values[i], start, exemplar ? [exemplar] : undefined);
      }
    };
  }

  /**
   * @param {Family} family
   * @param {Format} format
   * @param {AddSample} add
   * @returns {(row: number) => void}
   */
  #histogramReader(family, format, add) {
    const { bucketsAt, nativeExemplarsAt, layout } = /** @type {Required<Family>} */ (family);
    const name = this.#nameOf(format.sampleName(String(family.name), family.type), undefined, true);
    const sumColumn = widthOf(layout) - 1;
    return familyRow => {
      const row = name.isValid ? this.#rows.rowOf(family, familyRow, false) : undefined;
      const sum = family.pageOf(familyRow)[family.offsetOf(familyRow) + sumColumn];
      const histogram = encodedHistogram(bucketsAt(familyRow), sum);
      const exemplars = this.#newExemplars(nativeExemplarsAt?.(familyRow) ?? []);
      add(row, name, sum, startOf(family, familyRow), exemplars, histogram);
    };
  }

  /**
   * A series has several exemplars. Servers want them in the order of their time, and each once.
   *
   * @param {Exemplar[]} exemplars
   * @returns {Exemplar[] | undefined}
   */
  #newExemplars(exemplars) {
    const added = exemplars.filter(({ timestamp }) => timestamp > this.#exemplarsUntil);
    return added.length === 0 ? undefined : added.sort((a, b) => a.timestamp - b.timestamp);
  }

  /**
   * Adds the stale markers of series that this push does not have.
   *
   * @param {number} number of the push
   * @param {SeriesSample[]} samples to which they are added
   * @returns {Generator<void, void>}
   */
  *#endOthers(number, samples) {
    let compared = 0;
    for (const name of this.#names.values()) {
      for (const [row, last] of name.series) {
        if (++compared % SERIES_PER_STEP === 0) yield;
        if (last === number) continue;
        if (number - last > MARKERS_PER_SERIES) this.#rows.drop(row, name);
        else samples.push({ row, name, value: undefined, start: 0 });
      }
    }
  }

  /**
   * @param {string} name of the metric
   * @param {LabelPair | undefined} marker
   * @param {boolean} [isNative]
   * @returns {SampleName}
   */
  #nameOf(name, marker, isNative = false) {
    const key = `${name} ${marker ?? ''}`;
    let known = this.#names.get(key);
    if (known === undefined) {
      const labels = [labelOf('__name__', name)];
      if (marker !== undefined) labels.push(labelOf(...marker));
      const isValid = isValidMetricName(name);
      known = { labels, isMarked: marker !== undefined, isValid, isNative, series: new Map() };
      this.#names.set(key, known);
    }
    // A metric may be replaced by one of another type.
    known.isNative = isNative;
    return known;
  }
}

/**
 * @param {Family} family
 * @param {number} row
 * @returns {number} milliseconds since the epoch; 0 if unknown
 */
function startOf({ starts }, row) {
  return starts === undefined ? 0 : starts.startAt(row) * 1000;
}

/**
 * @param {Exemplar} exemplar
 * @returns {SentExemplar}
 */
function sentExemplar({ labelSet, value, timestamp }) {
  const labels = Object.entries(labelSet ?? {}).map(([name, text]) => labelOf(name, String(text)));
  const milliseconds = timestamp > 0 && timestamp < MOST_SECONDS ? Math.round(timestamp * 1000) : 0;
  return { labels, value: Number(value), timestamp: milliseconds };
}

module.exports = { WrittenSeries };
