'use strict';

// The messages of both versions of the protocol.
// 1.0: https://prometheus.io/docs/specs/prw/remote_write_spec/, with Prometheus' own fields for metadata and
// exemplars. 2.0: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/

const { ProtobufWriter } = require('./protobuf-writer');

/** @typedef {import('../../exposition/text-format').Exemplar} Exemplar */
/** @typedef {import('./label-rows').Label} Label */
/** @typedef {import('./label-rows').Row} Row */

/**
 * The labels that samples of different rows have in common.
 *
 * @typedef {object} SampleName
 * @property {Label} name
 * @property {Label | undefined} marker `le` or `quantile`
 */

/** @typedef {{name: string, help: string, type: string}} Metadata of a family */

/**
 * A sample of one series.
 *
 * @typedef {object} SeriesSample
 * @property {Row} row its labels, except those of its name
 * @property {SampleName} name
 * @property {number | undefined} value undefined: the series has ended
 * @property {Exemplar | undefined | null} exemplar
 */

/** @typedef {'1.0' | '2.0'} Protocol */

/** Types by their number in both versions; 0 is unknown. */
const TYPES = ['', 'counter', 'gauge', 'histogram', '', 'summary'];

/** Values, little endian. Which NaN a Float64Array holds is not JavaScript's concern, but Prometheus'. */
const STALE = Buffer.from('020000000000f07f', 'hex');
const NOT_A_NUMBER = Buffer.from('010000000000f87f', 'hex');

const SAMPLE_BYTES = 32; // at most

/** Usual size of an encoded label. */
const LABEL_BYTES = 64;

let nextId = 1;

/** Where the value of a sample is: after its tag, its length and the tag of the value. */
const VALUE_AT = 3;

/** @param {string} type */
function typeNumber(type) {
  return Math.max(TYPES.indexOf(type), 0);
}

/**
 * @param {Buffer} bytes
 * @param {number | undefined} value
 * @param {number} position
 */
function writeValue(bytes, value, position) {
  if (value === undefined) STALE.copy(bytes, position);
  else if (Number.isNaN(value)) NOT_A_NUMBER.copy(bytes, position);
  else bytes.writeDoubleLE(value, position);
}

/**
 * @param {number} value
 * @returns {Buffer}
 */
function valueBytes(value) {
  const bytes = Buffer.alloc(8);
  writeValue(bytes, value, 0);
  return bytes;
}

/**
 * @param {number} timestamp milliseconds since the epoch
 * @returns {Buffer} a sample, in which only the value has to be set
 */
function encodedSample(timestamp) {
  const writer = new ProtobufWriter(SAMPLE_BYTES);
  const start = writer.begin(2);
  writer.fixed64(1, STALE);
  writer.integer(2, timestamp);
  writer.end(start);
  return writer.bytes;
}

/**
 * @param {Label} label
 * @returns {Buffer} as version 1.0 has it
 */
function encodedLabel({ name, value }) {
  const writer = new ProtobufWriter(LABEL_BYTES);
  const start = writer.begin(1);
  writer.text(1, name);
  writer.text(2, value);
  writer.end(start);
  return Buffer.from(writer.bytes);
}

/**
 * @param {Exemplar} exemplar
 * @returns {number} milliseconds since the epoch, 0 if it has none
 */
function timestampOf({ timestamp }) {
  return timestamp > 0 && Number.isFinite(timestamp) ? Math.round(timestamp * 1000) : 0;
}

/**
 * @param {Exemplar} exemplar
 * @returns {Label[]}
 */
function exemplarLabels({ labelSet }) {
  return Object.entries(labelSet ?? {}).map(([name, value]) => ({ name, value: String(value), key: '' }));
}

/**
 * Writes the labels of a sample, sorted by name.
 *
 * @param {Row} row
 * @param {SampleName} sampleName
 * @param {(label: Label) => void} write
 */
function eachLabel({ labels, nameAt, markerAt }, { name, marker }, write) {
  for (let i = 0; i <= labels.length; i++) {
    if (i === nameAt) write(name);
    if (i === markerAt && marker !== undefined) write(marker);
    if (i < labels.length) write(labels[i]);
  }
}

/** `prometheus.WriteRequest`. */
class WriteRequest1 {
  #writer = new ProtobufWriter();
  #sample;
  /** Bytes of the last series; the next one has about as many. */
  #seriesBytes = 0;
  /** @type {Metadata | undefined} of the last sample */
  #metadata = undefined;

  /** @param {number} timestamp of all samples, milliseconds since the epoch */
  constructor(timestamp) {
    this.#sample = encodedSample(timestamp);
  }

  /** How many bytes the request has so far. */
  get length() {
    return this.#writer.length;
  }

  /**
   * @param {SeriesSample} sample
   * @param {Metadata | undefined} metadata
   */
  add({ row, name, value, exemplar }, metadata) {
    const writer = this.#writer;
    if (metadata !== this.#metadata) this.#writeMetadata(metadata);
    const expected = this.#seriesBytes;
    const start = writer.begin(1, expected);
    eachLabel(row, name, label => writeLabel(writer, label));
    writeValue(this.#sample, value, VALUE_AT);
    writer.append(this.#sample);
    if (exemplar) {
      const exemplarStart = writer.begin(3);
      for (const label of exemplarLabels(exemplar)) writeLabel(writer, label);
      writer.fixed64(2, valueBytes(exemplar.value));
      writer.integer(3, timestampOf(exemplar));
      writer.end(exemplarStart);
    }
    this.#seriesBytes = writer.length - start;
    writer.end(start, expected);
  }

  /** @returns {Buffer[]} */
  get parts() {
    return [this.#writer.bytes];
  }

  /** @param {Metadata | undefined} metadata */
  #writeMetadata(metadata) {
    this.#metadata = metadata;
    if (metadata === undefined) return;
    const writer = this.#writer;
    const start = writer.begin(3);
    writer.integer(1, typeNumber(metadata.type));
    writer.text(2, metadata.name);
    writer.text(4, metadata.help);
    writer.end(start);
  }
}

/**
 * @param {ProtobufWriter} writer
 * @param {Label} label
 */
function writeLabel(writer, label) {
  label.encoded ??= encodedLabel(label);
  writer.append(label.encoded);
}

/** `io.prometheus.write.v2.Request`. */
class WriteRequest2 {
  /** Two writers, because some receivers read the symbols before the series. */
  #symbolWriter = new ProtobufWriter();
  #writer = new ProtobufWriter();
  #sample;
  #id = nextId++;
  /** @type {Map<string, number>} */
  #symbols = new Map();

  /** @param {number} timestamp of all samples, milliseconds since the epoch */
  constructor(timestamp) {
    this.#sample = encodedSample(timestamp);
    this.#symbol('');
  }

  /** How many bytes the request has so far. */
  get length() {
    return this.#symbolWriter.length + this.#writer.length;
  }

  /**
   * @param {SeriesSample} sample
   * @param {Metadata | undefined} metadata
   */
  add({ row, name, value, exemplar }, metadata) {
    const writer = this.#writer;
    const start = writer.begin(5);
    const labelsStart = writer.begin(1);
    eachLabel(row, name, label => this.#writeReferences(label));
    writer.end(labelsStart);
    writeValue(this.#sample, value, VALUE_AT);
    writer.append(this.#sample);
    if (exemplar) {
      const exemplarStart = writer.begin(4);
      const exemplarLabelsStart = writer.begin(1);
      for (const label of exemplarLabels(exemplar)) this.#writeReferences(label);
      writer.end(exemplarLabelsStart);
      writer.fixed64(2, valueBytes(exemplar.value));
      writer.integer(3, timestampOf(exemplar));
      writer.end(exemplarStart);
    }
    if (metadata !== undefined) {
      const metadataStart = writer.begin(5);
      writer.integer(1, typeNumber(metadata.type));
      writer.integer(3, this.#symbol(metadata.help));
      writer.end(metadataStart);
    }
    writer.end(start);
  }

  /** @returns {Buffer[]} */
  get parts() {
    return [this.#symbolWriter.bytes, this.#writer.bytes];
  }

  /** @param {Label} label */
  #writeReferences(label) {
    if (label.request !== this.#id) {
      label.request = this.#id;
      label.nameReference = this.#symbol(label.name);
      label.valueReference = this.#symbol(label.value);
    }
    this.#writer.varint(/** @type {number} */ (label.nameReference));
    this.#writer.varint(/** @type {number} */ (label.valueReference));
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

module.exports = { WriteRequest1, WriteRequest2 };
