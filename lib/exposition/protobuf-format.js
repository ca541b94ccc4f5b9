'use strict';

// Writes families as messages of the protobuf format, each after its length:
// https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto
// Readers refuse a whole page because of one family without samples, of text that is not UTF-8, or of a
// native histogram whose count differs from the sum of its buckets. So such families are left out, and the
// count is computed here.

const { kindOf, samplesOf } = require('../series/layouts');
const { sampleReader } = require('./family-samples');
const { countOf } = require('../series/merged-buckets');
const { writeSide } = require('./native-buckets-message');
const { toNumber } = require('./number-format');
const { ProtobufWriter } = require('./protobuf-writer');
const { takesLong } = require('./text-format');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./text-format').Exemplar} Exemplar */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {import('./label-text').LabelPair} LabelPair */

// Some 60 series with ten classic buckets each: 0.1 ms.
const PIECE_BYTES = 16_384;

const FIRST_BYTES = 1024;

const NOTHING = Buffer.alloc(0);

/** Names of samples, those of counters too. */
const AS_THEY_ARE = { sampleName: (/** @type {string} */ name) => name };

const SUMMARY = 2;
const HISTOGRAM = 4;
/** @type {{type: number, field: number, startField?: number}} */
const UNTYPED = { type: 3, field: 5 };

/**
 * How rows of one number are written: type, field of the value, and that of the start timestamp in it.
 *
 * @type {Map<string, {type: number, field: number, startField?: number}>}
 */
const SHAPES = new Map([
  ['counter', { type: 0, field: 3, startField: 3 }],
  ['gauge', { type: 1, field: 2 }],
]);

/** @typedef {(writer: ProtobufWriter, row: number) => void} FieldsWriter writes what is known of a row */

/** A family of the format. Buffered until all of its metrics are written, because the length comes first. */
class Message {
  /** @type {Buffer[]} */
  #pieces = [];
  #writer = new ProtobufWriter(FIRST_BYTES);

  /**
   * @param {string} name
   * @param {{help: string}} family
   * @param {number} type
   */
  constructor(name, { help }, type) {
    this.name = name;
    this.help = String(help);
    this.type = type;
  }

  /**
   * @param {number} row
   * @param {FieldsWriter} writeLabels
   * @param {number} field of the value
   * @param {FieldsWriter} writeValue
   */
  add(row, writeLabels, field, writeValue) {
    const writer = this.#writer;
    const start = writer.begin(4);
    writeLabels(writer, row);
    const valueStart = writer.begin(field);
    writeValue(writer, row);
    writer.end(valueStart);
    writer.end(start);
  }

  /** @returns {boolean} whether there was enough for a piece */
  cut() {
    if (this.#writer.length < PIECE_BYTES) return false;
    this.#pieces.push(this.#writer.take());
    return true;
  }

  /** @returns {Buffer[]} the length of the message, and the message; nothing without metrics */
  get parts() {
    const metrics = [...this.#pieces, this.#writer.bytes];
    const bytes = metrics.reduce((sum, piece) => sum + piece.length, 0);
    if (bytes === 0) return [];
    const head = new ProtobufWriter(FIRST_BYTES);
    head.text(1, this.name);
    head.text(2, this.help);
    head.integer(3, this.type);
    const length = new ProtobufWriter(FIRST_BYTES);
    length.varint(head.length + bytes);
    return [length.bytes, head.bytes, ...metrics];
  }
}

/**
 * @param {Family} family
 * @returns {Generator<Buffer, void>}
 */
function* writeFamily(family) {
  const { messages, write } = rowWriter(family);
  // A row of a native histogram takes 5 µs and more, so that a piece would take longer than a slice.
  const isSlow = takesLong(family) || family.bucketsAt !== undefined;
  for (const row of family.rows()) if (write(row).cut() || isSlow) yield NOTHING;
  for (const { parts } of messages) yield* parts;
}

/**
 * @param {Family} family
 * @returns {{messages: Iterable<Message>, write: (row: number) => Message}} `write` returns one of those to
 *   which it has written
 */
function rowWriter(family) {
  const { isCumulative, isComputed } = kindOf(family.layout);
  if (!isCumulative && !isComputed) return sampleWriter(family);
  const message = new Message(String(family.name), family, isCumulative ? HISTOGRAM : SUMMARY);
  // A row's buckets get `le`, and its quantiles `quantile`, from the reader: a default label of that name
  // would be there twice.
  const writeLabels = labelWriter(family, true);
  const writeValue = isCumulative ? histogramWriter(family) : summaryWriter(family);
  const field = isCumulative ? 7 : 4;
  const write = (/** @type {number} */ row) => {
    message.add(row, writeLabels, field, writeValue);
    return message;
  };
  return { messages: [message], write };
}

/**
 * Rows of numbers: a message for each name, as samples of custom metric objects may have names of their own.
 *
 * @param {Family} family
 * @returns {ReturnType<typeof rowWriter>}
 */
function sampleWriter(family) {
  const { type, field, startField } = SHAPES.get(family.type) ?? UNTYPED;
  const writeLabels = labelWriter(family, false);
  /** @type {Map<string, Message>} */
  const messages = new Map();
  /** @type {Message} */
  let last;
  const read = sampleReader(family, AS_THEY_ARE, {
    nameOf: name => {
      let message = messages.get(name);
      if (message === undefined) messages.set(name, (message = new Message(name, family, type)));
      return message;
    },
    onSample: (message, row, value, exemplar) => {
      last = message;
      message.add(row, writeLabels, field, writer => {
        writer.double(1, value);
        if (startField === undefined) return;
        writeExemplar(writer, 2, exemplar);
        writeTime(writer, startField, family.starts?.startAt(row));
      });
    },
  });
  const write = (/** @type {number} */ row) => {
    read(row);
    return last;
  };
  return { messages: { [Symbol.iterator]: () => messages.values() }, write };
}

/**
 * @param {Family} family
 * @returns {FieldsWriter}
 */
function summaryWriter(family) {
  const valuesOf = valueReader(family);
  const { marks } = family.layout;
  return (writer, row) => {
    const values = valuesOf(row);
    const [sum, count] = values.slice(marks.length);
    writeCount(writer, 1, undefined, count);
    writer.double(2, sum);
    marks.forEach((quantile, i) => {
      const start = writer.begin(3);
      writer.double(1, quantile);
      writer.double(2, values[i]);
      writer.end(start);
    });
    writeTime(writer, 4, family.starts?.startAt(row));
  };
}

/**
 * @param {Family} family
 * @returns {FieldsWriter}
 */
function histogramWriter(family) {
  const valuesOf = valueReader(family);
  const { marks } = family.layout;
  const { exemplarAt, bucketsAt } = family;
  return (writer, row) => {
    const values = valuesOf(row);
    const [infinite, sum, count] = values.slice(marks.length);
    const buckets = bucketsAt?.(row);
    writeCount(writer, 1, 4, buckets === undefined ? count : countOf(buckets));
    writer.double(2, sum);
    for (let i = 0; i < marks.length; i++) writeBucket(writer, marks[i], values[i], exemplarAt?.(row, i));
    // Readers derive this bucket from the count. A native-only histogram gets no bucket: otherwise a
    // Prometheus that keeps classic buckets would create three more series.
    const isNativeOnly = buckets !== undefined && marks.length === 0;
    const exemplar = isNativeOnly ? undefined : exemplarAt?.(row, marks.length);
    if (exemplar) writeBucket(writer, Infinity, infinite, exemplar);
    writeTime(writer, 15, family.starts?.startAt(row));
    if (buckets === undefined) return;
    writeNative(writer, buckets);
    for (const each of family.nativeExemplarsAt?.(row) ?? []) writeExemplar(writer, 16, each);
  };
}

/**
 * @param {Family} family
 * @returns {(row: number) => number[]} the values of a row's samples, valid until the next call
 */
function valueReader(family) {
  const { read } = kindOf(family.layout);
  const values = samplesOf(family.layout).map(() => 0.5);
  return row => {
    read(values, family.pageOf(row), family.offsetOf(row), family.quantileValues?.(row) ?? []);
    return values;
  };
}

/**
 * @param {ProtobufWriter} writer
 * @param {number} bound
 * @param {number} count cumulative
 * @param {Exemplar | null | undefined} exemplar
 */
function writeBucket(writer, bound, count, exemplar) {
  const start = writer.begin(3);
  writeCount(writer, 1, 4, count);
  writer.double(2, bound);
  writeExemplar(writer, 3, exemplar);
  writer.end(start);
}

/**
 * @param {ProtobufWriter} writer
 * @param {number} field
 * @param {number | undefined} floatField for an average, or what else is not a whole number
 * @param {number} count
 */
function writeCount(writer, field, floatField, count) {
  const whole = count >= 0 && count < 2 ** 64 ? Math.floor(count) : 0;
  writer.integer(field, whole);
  if (whole !== count && floatField !== undefined) writer.double(floatField, count);
}

/**
 * @param {ProtobufWriter} writer of a histogram
 * @param {Buckets} buckets
 */
function writeNative(writer, { schema, zeroThreshold, zeroCount, positive, negative }) {
  writer.signed(5, schema);
  // Above 0 tells readers that the row is native although it may be empty.
  writer.double(6, Math.max(zeroThreshold, Number.MIN_VALUE));
  writer.integer(7, zeroCount);
  writeSide(writer, 9, negative);
  writeSide(writer, 12, positive);
}

/**
 * @param {ProtobufWriter} writer
 * @param {number} field
 * @param {Exemplar | null | undefined} exemplar that of a custom metric object may be anything
 */
function writeExemplar(writer, field, exemplar) {
  if (!exemplar) return;
  const start = writer.begin(field);
  for (const [name, value] of Object.entries(exemplar.labelSet ?? {}))
    writeLabel(writer, name, String(value));
  writer.double(2, toNumber(exemplar.value));
  writeTime(writer, 3, toNumber(exemplar.timestamp));
  writer.end(start);
}

/**
 * @param {ProtobufWriter} writer
 * @param {number} field
 * @param {number | undefined} seconds since the epoch, with milliseconds; written only if above 0
 */
function writeTime(writer, field, seconds = 0) {
  const milliseconds = Math.round(seconds * 1000);
  if (!(milliseconds > 0 && milliseconds <= Number.MAX_SAFE_INTEGER)) return;
  const start = writer.begin(field);
  writer.integer(1, Math.floor(milliseconds / 1000));
  writer.integer(2, (milliseconds % 1000) * 1e6);
  writer.end(start);
}

/**
 * @param {Family} family
 * @param {boolean} marked see Family.labels
 * @returns {FieldsWriter}
 */
function labelWriter(family, marked) {
  return (writer, row) => {
    for (const [name, value] of family.labels(row, marked)) writeLabel(writer, name, value);
  };
}

/**
 * @param {ProtobufWriter} writer
 * @param {string} name
 * @param {string} value
 */
function writeLabel(writer, name, value) {
  const start = writer.begin(1);
  writer.text(1, name);
  writer.text(2, value);
  writer.end(start);
}

module.exports = { writeFamily };
