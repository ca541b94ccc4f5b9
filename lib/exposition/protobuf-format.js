'use strict';

// Writes families as messages of the protobuf format, each after its length:
// https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto
// Readers refuse a whole page because of one family without samples, of text that is not UTF-8, or of a
// native histogram whose count differs from the sum of its buckets. So such families are left out, and the
// count is computed here.

const { kindOf, samplesOf } = require('../series/layouts');
const { countOf } = require('../series/merged-buckets');
const { writeLabel, writeSide } = require('./protobuf-messages');
const { toNumber } = require('./number-format');
const { ProtobufWriter } = require('./protobuf-writer');
const { takesLong, valueReader } = require('./text-format');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./text-format').Exemplar} Exemplar */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */

// Some 60 series with ten classic buckets each: 0.1 ms.
const PIECE_BYTES = 16_384;

const FIRST_BYTES = 1024;

const NOTHING = Buffer.alloc(0);

/** @typedef {(writer: ProtobufWriter, row: number) => void} ValueWriter */

/** @typedef {{type: number, field: number, startField?: number}} Shape `field`: of the value */

/** @type {Shape} */
const SUMMARY = { type: 2, field: 4 };
/** @type {Shape} */
const HISTOGRAM = { type: 4, field: 7 };
/** @type {Shape} */
const UNTYPED = { type: 3, field: 5 };

/**
 * How single numbers are written. `startField`: of the start timestamp in the value.
 *
 * @type {Map<string, Shape>}
 */
const SHAPES = new Map([
  ['counter', { type: 0, field: 3, startField: 3 }],
  ['gauge', { type: 1, field: 2 }],
]);

/** A family of the format. Buffered until all of its metrics are written, because the length comes first. */
class Message {
  /** @type {Buffer[]} */
  #pieces = [];
  writer = new ProtobufWriter(FIRST_BYTES);

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

  /** @returns {boolean} whether there was enough for a piece */
  cut() {
    if (this.writer.length < PIECE_BYTES) return false;
    this.#pieces.push(this.writer.take());
    return true;
  }

  /** @returns {Buffer[]} the length of the message, and the message */
  get parts() {
    const metrics = [...this.#pieces, this.writer.bytes];
    const head = new ProtobufWriter(FIRST_BYTES);
    head.text(1, this.name);
    head.text(2, this.help);
    head.integer(3, this.type);
    const length = new ProtobufWriter(FIRST_BYTES);
    length.varint(metrics.reduce((sum, piece) => sum + piece.length, head.length));
    return [length.bytes, head.bytes, ...metrics];
  }
}

/**
 * @param {Family} family
 * @returns {Generator<Buffer, void>}
 */
function* writeFamily(family) {
  /** @type {Map<string, Message>} by name: samples of custom metric objects may have names of their own */
  const messages = new Map();
  const write = rowWriter(family, messages);
  // A row of a native histogram takes 5 µs and more, so that a piece would take longer than a slice.
  const isSlow = takesLong(family) || family.bucketsAt !== undefined;
  for (const row of family.rows()) if (write(row) || isSlow) yield NOTHING;
  for (const { parts } of messages.values()) yield* parts;
}

/**
 * @param {Family} family
 * @param {Map<string, Message>} messages to which rows are written
 * @returns {(row: number) => boolean} whether there was enough for a piece
 */
function rowWriter(family, messages) {
  const { shape, values } = valuesOfRows(family);
  const familyName = String(family.name);
  // A row's buckets get `le`, and its quantiles `quantile`, from the reader: a default label of that name
  // would be there twice.
  const isMarked = kindOf(family.layout).marker !== undefined;
  return row => {
    const name = family.sampleName?.(row) || familyName;
    let isCut = false;
    for (const { suffix, writeValue } of values) {
      let message = messages.get(name + suffix);
      if (message === undefined) {
        message = new Message(name + suffix, family, shape.type);
        messages.set(message.name, message);
      }
      const { writer } = message;
      const start = writer.begin(4);
      for (const [label, text] of family.labels(row, isMarked)) writeLabel(writer, label, text);
      const valueStart = writer.begin(shape.field);
      writeValue(writer, row);
      writer.end(valueStart);
      writer.end(start);
      isCut = message.cut() || isCut;
    }
    return isCut;
  };
}

/**
 * @param {Family} family
 * @returns {{shape: Shape, values: {suffix: string, writeValue: ValueWriter}[]}}
 */
function valuesOfRows(family) {
  const { isCumulative, isComputed } = kindOf(family.layout);
  if (isCumulative)
    return { shape: HISTOGRAM, values: [{ suffix: '', writeValue: histogramWriter(family) }] };
  if (isComputed) return { shape: SUMMARY, values: [{ suffix: '', writeValue: summaryWriter(family) }] };
  const shape = SHAPES.get(family.type) ?? UNTYPED;
  const valuesOf = valueReader(family);
  const values = samplesOf(family.layout).map(({ suffix, column }, i) => ({
    suffix,
    writeValue: (/** @type {ProtobufWriter} */ writer, /** @type {number} */ row) => {
      writer.double(1, valuesOf(row)[i]);
      if (shape.startField === undefined) return;
      writeExemplar(writer, 2, column === undefined ? undefined : family.exemplarAt?.(row, column));
      writeTime(writer, shape.startField, family.starts?.startAt(row));
    },
  }));
  return { shape, values };
}

/**
 * @param {Family} family
 * @returns {ValueWriter}
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
 * @returns {ValueWriter}
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

module.exports = { writeFamily };
