'use strict';

// Runs in any process that records. The log of its source contains the metrics and label sets of the process.
// Each is appended once, when a capture first finds it. A number of bytes says how much of the log a reader
// has; a new reader starts from the beginning.
//
// A new log, with everything that exists then, is started in two cases: a reader needs bytes that are not in
// memory any more, or most of the log describes metrics and rows that are gone.

const { randomBytes } = require('node:crypto');
const { KINDS, kindOf } = require('../series/layouts');
const { UNKNOWN, startsAreRead, startOf, copyOfStarts, versionOf } = require('../series/row-starts');
const { ByteWriter } = require('./byte-buffers');
const { checksumOf, NO_CHECKSUM } = require('./checksum');
const {
  BYTE_ORDER,
  VERSION,
  LOG_MAGIC,
  LOG_NAME_BYTES,
  DEFINE,
  ROWS,
  DROP,
  STARTS,
} = require('./source-format');

/** Maximum number of rows in one record, and of new values of each label. Writing it takes 0.1 ms. */
const MOST_PER_RECORD = 1024;

// A log with more than this is rewritten when it has become three times as long, because metrics that are
// gone, and the old label sets of compacted tables, stay in it.
const SHORT_LOG_BYTES = 1 << 20;
const MAX_GROWTH = 3;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * A position in a log: how much a reader has, or needs.
 *
 * @typedef {{log: string, bytes: number}} LogPosition `log`: the log's name
 */

/**
 * @typedef {object} LogMetric
 * @property {number} number
 * @property {MetricView} view as of the last extend()
 * @property {number} tableEpoch
 * @property {number} rows in the log
 * @property {number[]} values by label: how many of its values are in the log
 * @property {import('../series/row-starts').Starts} starts of the rows in the log
 * @property {number} startsVersion version of the starts that were copied
 * @property {number} pass the last call of extend() that included the metric
 */

class SourceLog {
  /** 24 hex digits. */
  name = '';
  /** The checksum of all bytes, as of the end of the last extend(). */
  checksum = NO_CHECKSUM;
  /** The position up to which the checksum is computed. */
  #checked = 0;
  #writer = new ByteWriter();
  /** @type {Map<object, LogMetric>} by table */
  #metrics = new Map();
  /** How many metrics have been numbered. */
  #numbers = 0;
  #passes = 0;
  /** Length of the log when it was first complete; 0 before that. */
  #firstLength = 0;
  #onDefined;

  /** @param {(view: MetricView) => void} [onDefined] called when a metric has been given a number */
  constructor(onDefined = () => {}) {
    this.#onDefined = onDefined;
    /** Rises when metrics are gone. */
    this.losses = 0;
    this.restart();
  }

  /** Starts another log. */
  restart() {
    this.name = randomBytes(LOG_NAME_BYTES).toString('hex');
    this.checksum = NO_CHECKSUM;
    this.#checked = 0;
    this.#writer = new ByteWriter(16384);
    this.#metrics.clear();
    this.#numbers = this.#firstLength = 0;
    this.losses++;
    this.#write(writer => {
      writer.bytes(LOG_MAGIC);
      writer.uint32(BYTE_ORDER);
      writer.uint32(VERSION);
      writer.bytes(Buffer.from(this.name, 'hex'));
    });
  }

  /** Bytes so far: the end of a record. */
  get length() {
    return this.#writer.length;
  }

  /** The position of the first byte that is in memory. */
  get start() {
    return this.#writer.start;
  }

  /**
   * @param {MetricView['table']} table
   * @returns {boolean} whether it belongs to a metric of the last extend()
   */
  has(table) {
    return this.#metrics.has(table);
  }

  /**
   * @param {MetricView} view of a metric of the last extend()
   * @returns {number} the metric's number
   */
  numberOf(view) {
    return /** @type {LogMetric} */ (this.#metrics.get(view.table)).number;
  }

  /**
   * Appends what the log lacks of the metrics, and drops metrics that are gone. Between two steps the program
   * may record, and others may extend the log.
   *
   * @param {readonly MetricView[]} views of all metrics
   * @returns {Generator<void>} yields where a slice may end
   */
  *extend(views) {
    const pass = ++this.#passes;
    startsAreRead();
    for (const view of views) {
      const metric = this.#update(view, pass);
      if (metric.rows < view.table.rowCount) yield* this.#addRows(metric);
    }
    for (const metric of this.#metrics.values()) {
      if (metric.pass >= pass) continue;
      this.#drop(metric);
      if (metric.view.ended === undefined) this.losses++;
    }
    this.#updateChecksum();
    this.#firstLength ||= this.length;
  }

  /** Whether most of the log may describe what is gone. */
  get isMostlyGone() {
    return this.length > SHORT_LOG_BYTES && this.length > this.#firstLength * MAX_GROWTH;
  }

  /**
   * @param {number} position of a byte that is in memory, or the end
   * @returns {Uint8Array[]} the bytes from there on
   */
  bytesFrom(position) {
    return this.#writer.chunksFrom(position);
  }

  /**
   * Releases the memory of bytes that a reader has, or that are in a file.
   *
   * @param {number} position
   */
  forgetBefore(position) {
    this.#writer.dropBefore(position);
  }

  /**
   * Appends what a metric has besides new rows.
   *
   * @param {MetricView} view
   * @param {number} pass
   * @returns {LogMetric}
   */
  #update(view, pass) {
    const { table } = view;
    let metric = this.#metrics.get(table);
    if (metric !== undefined && isOutdated(metric, view)) {
      this.#drop(metric);
      metric = undefined;
    }
    metric ??= this.#define(view);
    metric.view = view;
    metric.pass = Math.max(metric.pass, pass);
    this.#writeStarts(metric);
    return metric;
  }

  /**
   * @param {LogMetric} metric that has rows which the log does not have
   * @returns {Generator<void>} yields where a slice may end
   */
  *#addRows(metric) {
    const { table } = metric.view;
    // Rows that are added meanwhile are left to the next call. So are all rows if they get new numbers, or if
    // others begin another log: then the metric is defined again.
    const end = table.rowCount;
    while (metric.rows < end && this.#metrics.get(table) === metric && metric.tableEpoch === table.epoch) {
      this.#write(writer => writeRows(writer, metric, Math.min(metric.rows + MOST_PER_RECORD, end)));
      this.#updateChecksum();
      yield;
    }
  }

  /**
   * @param {MetricView} view
   * @returns {LogMetric}
   */
  #define(view) {
    const { table } = view;
    const number = this.#numbers++;
    const values = table.labelNames.map(() => 1);
    // Lists the properties: with `...`, each object gets its own hidden class, and a capture of a thousand
    // metrics takes three times as long.
    /** @type {LogMetric} */
    const metric = {
      number,
      view,
      tableEpoch: table.epoch,
      rows: 0,
      values,
      starts: UNKNOWN,
      startsVersion: UNKNOWN,
      pass: 0,
    };
    this.#metrics.set(table, metric);
    this.#write(writer => writeDefinition(writer, metric));
    this.#onDefined(view);
    return metric;
  }

  /**
   * Writes which rows of the log have started again.
   *
   * @param {LogMetric} metric
   */
  #writeStarts(metric) {
    const { starts = UNKNOWN, rowCount } = metric.view.table;
    const version = versionOf(starts);
    if (version === metric.startsVersion) return;
    /** @type {number[]} */
    const rows = [];
    for (let row = 0; row < metric.rows; row++)
      if (startOf(starts, row) !== startOf(metric.starts, row)) rows.push(row);
    metric.startsVersion = version;
    metric.starts = copyOfStarts(starts, rowCount);
    if (rows.length === 0) return;
    this.#write(writer => {
      for (const value of [STARTS, metric.number, rows.length]) writer.uint32(value);
      for (const row of rows) writer.uint32(row);
      for (const row of rows) writer.uint32(startOf(starts, row));
    });
  }

  /**
   * Drops a metric that is gone, has been redefined, or whose rows have been renumbered. If it still exists,
   * it continues under a new number, so the other metrics need not be written again.
   *
   * @param {LogMetric} metric
   */
  #drop({ number, view }) {
    this.#metrics.delete(view.table);
    this.#write(writer => {
      writer.uint32(DROP);
      writer.uint32(number);
    });
  }

  /** @param {(writer: ByteWriter) => void} write appends a record */
  #write(write) {
    write(this.#writer);
    this.#writer.align(8);
  }

  #updateChecksum() {
    for (const bytes of this.bytesFrom(this.#checked)) this.checksum = checksumOf(bytes, this.checksum);
    this.#checked = this.length;
  }
}

/**
 * @param {ByteWriter} writer
 * @param {LogMetric} metric
 */
function writeDefinition(writer, { number, view }) {
  const { name, help, type, aggregator, layout } = view;
  writer.uint32(DEFINE);
  writer.uint32(number);
  for (const text of [name, help, type, aggregator]) writer.string(String(text));
  writer.uint32(KINDS.indexOf(kindOf(layout)));
  writer.list([...layout.marks], mark => writer.float64(Number(mark)));
  writer.uint32(view.windowed ? 1 : 0);
  writer.float64(view.maxIdleSeconds ?? view.table.maxIdleSeconds);
  writer.list(view.table.labelNames, labelName => writer.string(labelName));
}

/**
 * Writes a record of the next rows, with the label values that follow those in the log, and the forms of
 * label sets as they are now. After a compaction, a row may have a value that is far behind these: then it is
 * left to a later record.
 *
 * @param {ByteWriter} writer
 * @param {LogMetric} metric
 * @param {number} end of the rows
 */
function writeRows(writer, metric, end) {
  const { number, view, rows: fromRow, values: before } = metric;
  const { table } = view;
  const { index } = table;
  if (index === undefined) {
    for (const value of [ROWS, number, fromRow, end - fromRow]) writer.uint32(value);
    metric.rows = end;
  } else {
    const known = index.dictionaries.map(dictionary => dictionary.values);
    const values = known.map(({ length }, label) => Math.min(length, before[label] + MOST_PER_RECORD));
    const tuples = new Int32Array((end - fromRow) * (index.width + 1));
    const rows = copyTuples(table, index, fromRow, tuples, values);
    metric.rows = fromRow + rows;
    metric.values = values;
    for (const value of [ROWS, number, fromRow, rows]) writer.uint32(value);
    known.forEach((texts, label) => {
      writer.uint32(before[label]);
      writer.strings(texts.slice(before[label], values[label]));
    });
    writer.list(table.forms.list, ({ positions }) => writer.list(positions, each => writer.uint32(each)));
    writer.align(4);
    writer.append(tuples.subarray(0, rows * (index.width + 1)));
  }
  writeStarts(writer, table, fromRow, metric.rows);
}

/**
 * Copies label sets: of each row the number of its form, then an id for each label name. A function of its
 * own, because V8 optimizes a small one earlier.
 *
 * @param {MetricView['table']} table
 * @param {NonNullable<MetricView['table']['index']>} index the table's
 * @param {number} fromRow
 * @param {Int32Array} tuples receives as many rows as fit
 * @param {readonly number[]} values how many values each label name has
 * @returns {number} how many of these rows have no other values
 */
function copyTuples(table, index, fromRow, tuples, values) {
  const { width } = index;
  let rows = 0;
  for (let at = 0; at < tuples.length; rows++) {
    tuples[at++] = table.formOf(fromRow + rows);
    for (let label = 0; label < width; label++) {
      const id = index.idAt(fromRow + rows, label);
      if (id >= values[label]) return rows;
      tuples[at++] = id;
    }
  }
  return rows;
}

/**
 * @param {ByteWriter} writer
 * @param {MetricView['table']} table
 * @param {number} fromRow
 * @param {number} toRow
 */
function writeStarts(writer, { starts }, fromRow, toRow) {
  if (typeof starts !== 'object') {
    writer.list(starts === undefined ? [] : [starts], second => writer.uint32(second));
    return;
  }
  const seconds = new Int32Array(toRow - fromRow);
  seconds.set(starts.seconds.subarray(fromRow, toRow));
  writer.uint32(seconds.length);
  writer.append(seconds);
}

/**
 * @param {LogMetric} metric
 * @param {MetricView} view
 * @returns {boolean} whether it has been redefined, or its rows have been renumbered
 */
function isOutdated({ tableEpoch, view: before }, view) {
  return (
    tableEpoch !== view.table.epoch ||
    before.name !== view.name ||
    before.help !== view.help ||
    before.type !== view.type ||
    before.aggregator !== view.aggregator
  );
}

module.exports = { SourceLog };
