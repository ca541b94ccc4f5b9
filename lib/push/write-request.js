'use strict';

// The messages of both versions of the protocol.
// 1.0: https://prometheus.io/docs/specs/prw/remote_write_spec/, with Prometheus' own fields for metadata and
// exemplars. 2.0: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/

const { labelsOfSeries } = require('./label-rows');
const { ProtobufWriter } = require('../exposition/protobuf-writer');
const { countOf } = require('../series/merged-buckets');
const { writeLabel, writeSide } = require('../exposition/protobuf-messages');
const { compressSteps } = require('./snappy');

/** @typedef {import('./label-rows').Label} Label */

/** @typedef {'1.0' | '2.0'} Protocol */

/** @typedef {{name: string, help: string, type: string}} Metadata of a family */

/** @typedef {{labels: Label[], value: number, timestamp: number}} SentExemplar `timestamp`: 0 if unknown */

/**
 * A sample of one series.
 *
 * @typedef {object} SeriesSample
 * @property {import('./label-rows').Row} row
 * @property {import('./label-rows').SampleName} name
 * @property {number | undefined} value undefined: the series has ended
 * @property {number} start when it began to count, milliseconds since the epoch; 0 if unknown
 * @property {Buffer} [histogram] of a native histogram: encodedHistogram(). `value` is its sum
 * @property {SentExemplar[]} [exemplars]
 * @property {Metadata} [metadata]
 */

/** @typedef {{body: Buffer, samples: SeriesSample[]}} Request `body`: compressed */

// Receivers limit what they decode, and refuse the whole request if one sample is refused.
const REQUEST_BYTES = 2 ** 20;

const SAMPLES_PER_STEP = 64;

/** Types by their number in both versions; 0 is unknown. */
const TYPES = ['', 'counter', 'gauge', 'histogram', '', 'summary'];

/** The NaN that stands for the end of a series, little endian. JavaScript may not keep its bits. */
const STALE = Buffer.from('020000000000f07f', 'hex');

/** More than one of 160 buckets has, mostly. */
const HISTOGRAM_BYTES = 1024;

/** Writes fields that are kept. */
const fieldsWriter = new ProtobufWriter(HISTOGRAM_BYTES);

let nextId = 1;

/** What the versions have in common: a list of series, and the fields of samples and exemplars. */
class WriteRequest {
  #fields;
  /** When the series of the last sample began. */
  #began = NaN;
  /** @type {Uint8Array} */
  #times = STALE;
  /** Writes the series. */
  writer = new ProtobufWriter();

  /**
   * @param {number} timestamp of all samples, milliseconds since the epoch
   * @param {{series: number, exemplar: number, histogram: number, hasStarts: boolean,
   *   hasLateHistograms: boolean}} fields `hasLateHistograms`: servers read histograms of a series after its
   *   exemplars, which they drop if the series is new
   */
  constructor(timestamp, fields) {
    this.timestamp = timestamp;
    this.#fields = fields;
  }

  /** @returns {Buffer[]} */
  get parts() {
    return [this.writer.bytes];
  }

  /** How many bytes the request has so far. */
  get length() {
    return this.writer.length;
  }

  /** @param {SeriesSample} sample */
  add({ row, name, value, start: began, histogram, exemplars, metadata }) {
    const { writer } = this;
    const fields = this.#fields;
    const labels = labelsOfSeries(row, name);
    let start = writer.begin(fields.series);
    this.writeLabels(labels);
    const written = fields.hasStarts ? began : 0;
    if (name.isNative) this.#writeHistogram(histogram ?? ENDED_HISTOGRAM, written);
    else this.#writeSample(value, written);
    if (name.isNative && exemplars !== undefined && fields.hasLateHistograms) {
      writer.end(start);
      start = writer.begin(fields.series);
      this.writeLabels(labels);
    }
    for (const exemplar of exemplars ?? []) {
      const exemplarStart = writer.begin(fields.exemplar);
      this.writeLabels(exemplar.labels);
      writer.double(2, exemplar.value);
      writer.integer(3, exemplar.timestamp);
      writer.end(exemplarStart);
    }
    if (metadata !== undefined) this.writeMetadata(metadata);
    writer.end(start);
  }

  /**
   * @param {number | undefined} value
   * @param {number} began 0: not to be written
   */
  #writeSample(value, began) {
    const { writer } = this;
    const start = writer.begin(2);
    if (value === undefined) writer.fixed64(1, STALE);
    else writer.double(1, value);
    writer.append(this.#timesOf(began));
    writer.end(start);
  }

  /**
   * @param {number} began 0: not to be written
   * @returns {Uint8Array} the fields of a sample's times, which take a tenth of the time of a push to encode
   */
  #timesOf(began) {
    if (this.#began !== began) {
      this.#began = began;
      fieldsWriter.integer(2, this.timestamp);
      if (began > 0) fieldsWriter.integer(3, began);
      this.#times = fieldsWriter.take();
    }
    return this.#times;
  }

  /**
   * @param {Buffer} histogram
   * @param {number} began 0: not to be written
   */
  #writeHistogram(histogram, began) {
    const { writer } = this;
    const start = writer.begin(this.#fields.histogram);
    writer.append(histogram);
    writer.integer(15, this.timestamp);
    if (began > 0) writer.integer(17, began);
    writer.end(start);
  }

  /** @param {Label[]} _labels */
  writeLabels(_labels) {}

  /** @param {Metadata} _metadata of the series that is being written */
  writeMetadata(_metadata) {}
}

/** `prometheus.WriteRequest`. */
class WriteRequest1 extends WriteRequest {
  /** @type {Metadata | undefined} of the last sample */
  #metadata = undefined;

  /** @param {number} timestamp */
  constructor(timestamp) {
    super(timestamp, { series: 1, exemplar: 3, histogram: 4, hasStarts: false, hasLateHistograms: true });
  }

  /** @param {SeriesSample} sample */
  add(sample) {
    const { metadata } = sample;
    // Once for a family, beside the series.
    if (metadata !== undefined && metadata !== this.#metadata) {
      this.#metadata = metadata;
      const { writer } = this;
      const start = writer.begin(3);
      writer.integer(1, typeNumber(metadata));
      writer.text(2, metadata.name);
      writer.text(4, metadata.help);
      writer.end(start);
    }
    super.add(sample);
  }

  /** @param {Label[]} labels */
  writeLabels(labels) {
    for (const label of labels) {
      label.encoded ??= encodedLabel(label);
      this.writer.append(label.encoded);
    }
  }
}

/** `io.prometheus.write.v2.Request`. */
class WriteRequest2 extends WriteRequest {
  /** A writer of their own, because some receivers read the symbols before the series. */
  #symbolWriter = new ProtobufWriter();
  #id = nextId++;
  /** @type {Map<string, number>} */
  #symbols = new Map();

  /** @param {number} timestamp */
  constructor(timestamp) {
    super(timestamp, { series: 5, exemplar: 4, histogram: 3, hasStarts: true, hasLateHistograms: false });
    this.#symbol('');
  }

  get parts() {
    return [this.#symbolWriter.bytes, ...super.parts];
  }

  get length() {
    return this.#symbolWriter.length + super.length;
  }

  /** @param {Label[]} labels */
  writeLabels(labels) {
    const { writer } = this;
    const start = writer.begin(1);
    for (const label of labels) {
      if (label.request !== this.#id) {
        label.request = this.#id;
        label.nameReference = this.#symbol(label.name);
        label.valueReference = this.#symbol(label.value);
      }
      writer.varint(/** @type {number} */ (label.nameReference));
      writer.varint(/** @type {number} */ (label.valueReference));
    }
    writer.end(start);
  }

  /** @param {Metadata} metadata */
  writeMetadata(metadata) {
    const { writer } = this;
    const start = writer.begin(5);
    writer.integer(1, typeNumber(metadata));
    writer.integer(3, this.#symbol(metadata.help));
    writer.end(start);
  }

  /** @param {string} text */
  #symbol(text) {
    const existing = this.#symbols.get(text);
    if (existing !== undefined) return existing;
    const reference = this.#symbols.size;
    this.#symbols.set(text, reference);
    this.#symbolWriter.text(4, text);
    return reference;
  }
}

/** @param {Metadata} metadata */
function typeNumber({ type }) {
  return Math.max(TYPES.indexOf(type), 0);
}

/**
 * The fields of a native histogram that both versions have.
 *
 * @param {import('../series/merged-buckets').Buckets} buckets
 * @param {number} sum
 * @returns {Buffer}
 */
function encodedHistogram(buckets, sum) {
  const { schema, zeroThreshold, zeroCount, positive, negative } = buckets;
  const writer = fieldsWriter;
  writer.integer(1, countOf(buckets));
  writer.double(3, sum);
  writer.signed(4, schema);
  writer.double(5, zeroThreshold);
  writer.integer(6, zeroCount);
  writeSide(writer, 8, negative);
  writeSide(writer, 11, positive);
  return writer.take();
}

/** The same of a series that has ended. */
const ENDED_HISTOGRAM = endedHistogram();

function endedHistogram() {
  fieldsWriter.fixed64(3, STALE);
  return fieldsWriter.take();
}

/**
 * @param {Label} label
 * @returns {Buffer} as version 1.0 has it
 */
function encodedLabel({ name, value }) {
  writeLabel(fieldsWriter, name, value);
  return fieldsWriter.take();
}

/**
 * @param {SeriesSample[]} samples
 * @param {Protocol} protocol
 * @param {number} timestamp of all samples, milliseconds since the epoch
 * @returns {Generator<void, Request[]>} yields where a slice may end
 */
function* requestSteps(samples, protocol, timestamp) {
  const WriteRequestOf = protocol === '2.0' ? WriteRequest2 : WriteRequest1;
  const requests = [];
  let request = new WriteRequestOf(timestamp);
  let start = 0;
  for (let end = 1; end <= samples.length; end++) {
    request.add(samples[end - 1]);
    const isLast = end === samples.length;
    const isComplete = isLast || request.length >= REQUEST_BYTES;
    if (end % SAMPLES_PER_STEP !== 0 && !isComplete) continue;
    yield;
    if (!isComplete) continue;
    requests.push({ body: yield* compressSteps(request.parts), samples: samples.slice(start, end) });
    request = new WriteRequestOf(timestamp);
    start = end;
  }
  return requests;
}

module.exports = { requestSteps, encodedHistogram };
