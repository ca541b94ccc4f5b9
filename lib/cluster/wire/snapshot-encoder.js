'use strict';

// Writes one snapshot of a worker: header, dictionary part, number part, columns, end mark.

const { ByteWriter } = require('./byte-buffers');
const {
  MAGIC,
  END_MARK,
  BYTE_ORDER,
  VERSION,
  HEADER_BYTES,
  END_BYTES,
  DEFINITION,
  ROWS,
  DROPPED,
  TABLE_ENTRY,
  JSON_ENTRY,
  LAYOUT_KINDS,
} = require('./snapshot-format');

// Pages below this are gathered in one buffer: an iovec of its own costs more than the copy.
const GATHER_BELOW_BYTES = 16384;

/** @typedef {import('../../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../capture/series-journal').SeriesJournal} SeriesJournal */

/**
 * A metric of a registry, as it is captured: one of ours with its table, or the JSON of somebody's own.
 *
 * @typedef {object} CaptureEntry
 * @property {number} defaults number of its registry's default labels
 * @property {MetricView} [view]
 * @property {EncodedDigests} [digests] of a summary
 * @property {import('../capture/exemplar-encoder').ExemplarBlock} [exemplars]
 * @property {string} [json] by stringifyJson()
 */

/** @typedef {{index: Float64Array, centroids: Float64Array[]}} EncodedDigests `index`: by row, how many centroids and which version */

/**
 * @typedef {object} Capture
 * @property {number} workerId
 * @property {string} incarnation hex, 16 bytes
 * @property {number} sequence
 * @property {number} capturedAt milliseconds since the epoch
 * @property {Record<string, unknown>[]} defaultLabels
 * @property {CaptureEntry[]} entries
 * @property {[stage: string, name: string, count: number][]} failures
 */

/** Bytes that follow the head: pages as they lie in memory, small things gathered. */
class ColumnArea {
  /** @type {Uint8Array[]} */
  chunks = [];
  length = 0;
  #gather = new ByteWriter(GATHER_BELOW_BYTES);

  /**
   * @param {ArrayBufferView} view
   * @returns {number} where it begins, relative to the area
   */
  add(view) {
    const start = this.length;
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    if (bytes.length < GATHER_BELOW_BYTES) {
      this.#gather.bytes(bytes);
    } else {
      this.flush();
      this.chunks.push(bytes);
    }
    this.length += bytes.length;
    return start;
  }

  align() {
    const gap = (8 - (this.length % 8)) % 8;
    if (gap > 0) this.add(new Uint8Array(gap));
  }

  flush() {
    if (this.#gather.length === 0) return;
    this.chunks.push(this.#gather.finish());
    this.#gather = new ByteWriter(GATHER_BELOW_BYTES);
  }
}

/**
 * Encodes a capture. The columns are not copied: the chunks are right only until the next number is recorded.
 *
 * @param {Capture} capture
 * @param {SeriesJournal} journal which has noted all metrics of the capture
 * @param {{epoch: number, series: number} | undefined} known what the reader knows of the journal
 * @returns {{chunks: Uint8Array[], bytes: number}}
 */
function encodeSnapshot(capture, journal, known) {
  const head = new ByteWriter(16384);
  head.bytes(new Uint8Array(HEADER_BYTES));
  const { start, segments } = journal.since(known);
  head.uint32(segments.length);
  for (const segment of segments) writeSegment(head, segment);
  head.align(8);
  const numbersStart = head.length;
  const columns = new ColumnArea();
  writeNumbers(head, columns, capture, journal);
  head.align(8);
  columns.align();
  columns.flush();
  const columnsStart = head.length;
  const bytes = columnsStart + columns.length + END_BYTES;

  const header = new ByteWriter(HEADER_BYTES);
  header.bytes(MAGIC);
  header.uint32(BYTE_ORDER);
  header.uint32(VERSION);
  header.bytes(Buffer.from(capture.incarnation, 'hex'));
  header.uint32(capture.workerId);
  header.uint32(journal.epoch);
  for (const value of [capture.sequence, capture.capturedAt, start, journal.length]) header.float64(value);
  for (const value of [numbersStart, columnsStart, bytes]) header.float64(value);
  head.buffer.set(header.finish());

  const end = new ByteWriter(END_BYTES);
  end.float64(capture.sequence);
  end.bytes(END_MARK);
  return { chunks: [head.finish(), ...columns.chunks, end.finish()], bytes };
}

/**
 * @param {ByteWriter} writer
 * @param {import('../capture/series-journal').Segment} segment
 */
function writeSegment(writer, { metric, defines, drops, fromRow, toRow, fromValues, toValues }) {
  const { view, number } = metric;
  if (defines) writeDefinition(writer, number, view);
  else writer.uint32(0);
  if (drops) {
    writer.uint32(DROPPED);
    writer.uint32(number);
    return;
  }
  const rows = toRow - fromRow;
  writer.uint32(ROWS);
  writer.uint32(number);
  writer.uint32(fromRow);
  writer.uint32(rows);
  const { index, forms } = view.table;
  if (index === undefined) return;
  index.dictionaries.forEach(({ values }, label) => {
    writer.uint32(fromValues[label]);
    writer.strings(values.slice(fromValues[label], toValues[label]));
  });
  writer.uint32(forms.list.length);
  for (const { positions } of forms.list) {
    writer.uint32(positions.length);
    for (const position of positions) writer.uint32(position);
  }
  const tuples = new Int32Array(rows * (index.width + 1));
  let at = 0;
  for (let row = fromRow; row < toRow; row++) {
    tuples[at++] = view.table.formOf(row);
    for (let label = 0; label < index.width; label++) tuples[at++] = index.idAt(row, label);
  }
  writer.align(4);
  writer.bytes(new Uint8Array(tuples.buffer));
}

/**
 * @param {ByteWriter} writer
 * @param {number} number
 * @param {MetricView} view
 */
function writeDefinition(writer, number, view) {
  const { name, help, type, aggregator, layout, table } = view;
  writer.uint32(DEFINITION);
  writer.uint32(number);
  for (const text of [name, help, type, aggregator]) writer.string(String(text));
  writer.uint32(LAYOUT_KINDS.indexOf(/** @type {any} */ (layout.kind)));
  const marks =
    layout.kind === 'histogram' ? layout.bounds : layout.kind === 'summary' ? layout.quantiles : [];
  writer.uint32(marks.length);
  for (const mark of marks) writer.float64(Number(mark));
  writer.uint32(view.windowed ? 1 : 0);
  writer.uint32(table.labelNames.length);
  for (const labelName of table.labelNames) writer.string(labelName);
}

/**
 * @param {ByteWriter} writer
 * @param {ColumnArea} columns
 * @param {Capture} capture
 * @param {SeriesJournal} journal
 */
function writeNumbers(writer, columns, capture, journal) {
  writer.uint32(capture.defaultLabels.length);
  for (const labels of capture.defaultLabels) {
    const names = Object.keys(labels);
    writer.uint32(names.length);
    for (const name of names) {
      writer.string(name);
      writer.string(String(labels[name]));
    }
  }
  writer.uint32(capture.failures.length);
  for (const [stage, name, count] of capture.failures) {
    writer.string(stage);
    writer.string(name);
    writer.float64(count);
  }
  writer.uint32(capture.entries.length);
  for (const entry of capture.entries) {
    if (entry.view === undefined) {
      writer.uint32(JSON_ENTRY);
      writer.uint32(entry.defaults);
      writer.string(entry.json ?? 'null');
    } else {
      writer.uint32(TABLE_ENTRY);
      writer.uint32(entry.defaults);
      writer.uint32(journal.numberOf(entry.view));
      writeColumns(writer, columns, entry.view);
      writeExtras(writer, columns, entry);
    }
  }
}

/**
 * @param {ByteWriter} writer
 * @param {ColumnArea} columns
 * @param {MetricView} view
 */
function writeColumns(writer, columns, { table }) {
  const { rowCount, liveCount, order, orderLength, pages, width } = table;
  writer.uint32(rowCount);
  writer.uint32(liveCount);
  writer.uint32(order === undefined ? 1 : 0);
  columns.align();
  let left = rowCount * width;
  const start = columns.length;
  for (const page of pages) {
    columns.add(left < page.length ? page.subarray(0, left) : page);
    left -= Math.min(left, page.length);
  }
  writer.float64(start);
  if (order !== undefined) {
    const live = order.subarray(0, orderLength);
    writer.float64(columns.add(liveCount === orderLength ? live : live.filter(row => row !== -1)));
  }
}

/**
 * @param {ByteWriter} writer
 * @param {ColumnArea} columns
 * @param {CaptureEntry} entry
 */
function writeExtras(writer, columns, { digests, exemplars }) {
  columns.align();
  writer.uint32(digests === undefined ? 0 : 1);
  if (digests !== undefined) {
    writer.float64(columns.add(digests.index));
    for (const centroids of digests.centroids) columns.add(centroids);
  }
  writer.uint32(exemplars === undefined ? 0 : exemplars.count);
  if (exemplars !== undefined) writer.float64(columns.add(exemplars.bytes));
}

/**
 * Somebody's own metric as JSON, which by itself has no NaN, no infinities and no BigInt.
 *
 * @param {unknown} metric
 * @returns {string}
 * @throws {TypeError} where it cannot be written as JSON
 */
function stringifyJson(metric) {
  return JSON.stringify(metric, (_key, value) => {
    const isSpecial = typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value));
    return isSpecial ? { $number: String(value) } : value;
  });
}

module.exports = { stringifyJson, encodeSnapshot };
