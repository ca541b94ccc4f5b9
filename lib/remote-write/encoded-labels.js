'use strict';

// Labels as one request has them. Those of a row are encoded once, and those of a name once per request: a
// histogram has a dozen samples or more per row, and they differ in `__name__` and `le` only.

const { ProtobufWriter } = require('./protobuf-writer');

const FIRST_BYTES = 1024;

/** @typedef {import('./label-rows').Label} Label */
/** @typedef {import('./label-rows').Row} Row */

/**
 * The labels that samples of different rows have in common.
 *
 * @typedef {object} SampleName
 * @property {Label} name
 * @property {Label | undefined} marker
 */

class EncodedLabels {
  #encode;
  #rowWriter = new ProtobufWriter(FIRST_BYTES);
  /** @type {Row | undefined} whose labels have been encoded */
  #row = undefined;
  /** Where they end. */
  #endBeforeName = 0;
  #endBeforeMarker = 0;
  #nameWriter = new ProtobufWriter(FIRST_BYTES);
  /** @type {Map<SampleName, {start: number, middle: number, end: number}>} */
  #names = new Map();
  /** Of the sample. */
  #start = 0;
  #middle = 0;
  #end = 0;

  /** @param {(writer: ProtobufWriter, label: Label) => void} encode */
  constructor(encode) {
    this.#encode = encode;
  }

  /**
   * Chooses the labels that copyTo() copies.
   *
   * @param {Row} row
   * @param {SampleName} name
   * @returns {number} how many bytes they have
   */
  select(row, name) {
    if (row !== this.#row) this.#encodeRow(row);
    const position = this.#names.get(name) ?? this.#encodeName(name);
    ({ start: this.#start, middle: this.#middle, end: this.#end } = position);
    return this.#rowWriter.length + this.#end - this.#start;
  }

  /** @param {ProtobufWriter} writer */
  copyTo(writer) {
    const row = this.#rowWriter;
    writer.copy(row, 0, this.#endBeforeName);
    writer.copy(this.#nameWriter, this.#start, this.#middle);
    writer.copy(row, this.#endBeforeName, this.#endBeforeMarker);
    writer.copy(this.#nameWriter, this.#middle, this.#end);
    writer.copy(row, this.#endBeforeMarker, row.length);
  }

  /** @param {Row} row */
  #encodeRow(row) {
    const writer = this.#rowWriter;
    this.#row = row;
    writer.length = 0;
    for (let i = 0; i < row.labels.length; i++) {
      if (i === row.nameAt) this.#endBeforeName = writer.length;
      if (i === row.markerAt) this.#endBeforeMarker = writer.length;
      this.#encode(writer, row.labels[i]);
    }
    if (row.nameAt === row.labels.length) this.#endBeforeName = writer.length;
    if (row.markerAt === row.labels.length) this.#endBeforeMarker = writer.length;
  }

  /** @param {SampleName} sampleName */
  #encodeName(sampleName) {
    const { name, marker } = sampleName;
    const writer = this.#nameWriter;
    const start = writer.length;
    this.#encode(writer, name);
    const middle = writer.length;
    if (marker !== undefined) this.#encode(writer, marker);
    const position = { start, middle, end: writer.length };
    this.#names.set(sampleName, position);
    return position;
  }
}

module.exports = { EncodedLabels };
