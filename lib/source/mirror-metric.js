'use strict';

// Runs where thread-mirror.js does. A metric of another thread, as far as that thread has published it.
// Everything that comes from the thread is checked.

const { VIEW } = require('../registry/metric-view');
const { checkLabelNamesAreValid } = require('../registry/names');
const { kindOf, widthOf, layoutFrom, isLasting } = require('../series/layouts');
const { Exemplar, Exemplars } = require('../metric/exemplar');
const { MirrorDigest } = require('./mirror-digest');
const { MirrorTable } = require('./mirror-table');
const { parseJson } = require('./columns-decoder');
const RECORD = require('./log-records');

const MOST_SHIFT = 20;
const MOST_WIDTH = 2 ** 20;
/** Position of the first label's value in the record of a row. */
const FIRST_VALUE = 4;
/** Position of the offset and lengths in the record of a place. */
const PLACE_NUMBERS = 4;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./shared-log').LogReader} LogReader */

/**
 * Returns a function that makes the thread run the hook of a metric; undefined if the metric has none, or
 * others run it. The promise rejects if the hook failed. It is undefined if the thread does not answer.
 *
 * @typedef {(number: number) => (() => Promise<void> | undefined) | undefined} HookOf
 */

/** Loaded on first use: programs without native histograms do not need this file. */
const mirrorBuckets = (/** @type {unknown} */ maxBuckets) =>
  new (require('./mirror-buckets').MirrorBuckets)(maxBuckets);

class MirrorMetric {
  /** @type {MirrorDigest[]} by row */
  #digests = [];
  /** @type {import('./mirror-digest').Block[]} memory of the digests */
  #blocks = [];
  #table;
  #exemplarWidth;
  #number;
  #hookOf;
  /** @type {MetricView} */
  #view;

  /**
   * @param {number} number
   * @param {any} definition
   * @param {HookOf} hookOf
   * @throws {Error} if the definition is not valid
   */
  constructor(number, { layout, windowed, labelNames, maxBuckets, ...given }, hookOf) {
    const { width, pageShift, exemplarWidth, maxIdleSeconds, expiredCount, ...texts } = given;
    [width, pageShift, exemplarWidth, expiredCount].forEach(checkInteger);
    if (!(maxIdleSeconds >= 0)) throw new Error('a time to be idle is not valid');
    if (pageShift > MOST_SHIFT || width < 1 || Math.max(width, exemplarWidth) > MOST_WIDTH)
      throw new Error('a table is not valid');
    this.name = text(texts.name);
    checkNames(labelNames.map(text));
    this.#table = new MirrorTable(labelNames, width, pageShift, { maxIdleSeconds, expiredCount });
    if (isLasting(texts.type)) this.#table.starts = 0;
    this.#exemplarWidth = exemplarWidth;
    const { isComputed, hasBuckets } = kindOf(layout);
    const digestOf = (/** @type {number} */ row) => (this.#digests[row] ??= new MirrorDigest());
    this.#view = /** @type {any} */ ({
      ...{ name: this.name, help: text(texts.help), type: text(texts.type) },
      ...{ aggregator: text(texts.aggregator), layout: layoutIn(layout, width), table: this.#table },
      ...(isComputed ? { digestOf, windowed: windowed === true } : {}),
      ...(hasBuckets ? { buckets: mirrorBuckets(maxBuckets) } : {}),
    });
    this.#number = number;
    this.#hookOf = hookOf;
  }

  get collect() {
    return this.#hookOf(this.#number);
  }

  /** @returns {MetricView} */
  [VIEW]() {
    return this.#view;
  }

  /**
   * Applies a record about the metric's table.
   *
   * @param {LogReader} record
   * @param {Map<number, SharedArrayBuffer>} memories with that of the record
   * @throws {Error} if it is not valid
   */
  apply(record, memories) {
    const table = this.#table;
    const memoryAt = (/** @type {number} */ i) =>
      /** @type {SharedArrayBuffer} */ (memories.get(record.integer(i)));
    switch (record.kind) {
      case RECORD.ROW: {
        const row = record.integer(1);
        const idAt = (/** @type {number} */ position) => record.integer(FIRST_VALUE + position);
        table.follow(row, record.integer(3), idAt, () => record.text);
        this.#setStart(row, record);
        this.#view.exemplars?.drop(row);
        break;
      }
      case RECORD.RESET:
        this.#setStart(record.integer(1), record);
        break;
      case RECORD.VALUE:
        table.addValue(record.integer(1), record.text);
        break;
      case RECORD.FORM:
        table.addForm(record.integersFrom(1));
        break;
      case RECORD.PAGE:
        table.setPage(record.integer(1), memoryAt(2), record.integer(3), record.integer(4));
        break;
      case RECORD.ORDER:
        table.setOrder(record.integersFrom(1));
        break;
      case RECORD.REMOVE:
        table.removeLive(record.integer(1), record.integer(2) === RECORD.EXPIRED);
        this.#view.exemplars?.drop(record.integer(1));
        break;
      case RECORD.CLEAR:
        table.clear();
        break;
      case RECORD.OVERFLOW:
        table.setOverflowCount(memoryAt(1), record.integer(2));
        break;
      case RECORD.DIGESTS:
        this.#blocks.push({ numbers: new Float64Array(memoryAt(1)), words: new Int32Array(memoryAt(1)) });
        break;
      case RECORD.DIGEST:
        this.#placeDigest(record);
        break;
      case RECORD.BUCKETS:
        /** @type {any} */ (this.#view).buckets.setPage(record.integer(1), record.integer(2), memoryAt(3));
        break;
      case RECORD.EXEMPLAR:
        if (record.text === '') this.#view.exemplars?.drop(record.integer(1));
        else this.#setExemplar(record.integer(1), record.integer(2), JSON.parse(record.text));
        break;
      default:
        throw new Error('a record is of an unknown kind');
    }
  }

  /**
   * @param {number} row
   * @param {LogReader} record
   * @throws {Error} if it is not valid
   */
  #setStart(row, record) {
    this.#checkRow(row);
    if (this.#table.starts !== undefined) this.#table.setStart(row, record.unsigned(2));
  }

  /**
   * @param {LogReader} record
   * @throws {Error} if it is not valid
   */
  #placeDigest(record) {
    const row = record.integer(1);
    this.#checkRow(row);
    const block = this.#blocks[record.integer(3)];
    const [offset, bufferLength, listLength] = record.integersFrom(PLACE_NUMBERS);
    const digest = /** @type {any} */ (this.#view).digestOf?.(row);
    digest.place(record.integer(2), block, offset, bufferLength, listLength);
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {any} exemplar labels as pairs of name and value, value, timestamp
   * @throws {Error} if it is not valid
   */
  #setExemplar(row, column, [labels, value, timestamp]) {
    this.#checkRow(row);
    if (column >= this.#exemplarWidth) throw new Error('an exemplar is not valid');
    const labelSet = Object.fromEntries(labels.map((/** @type {any} */ pair) => pair.map(text)));
    const exemplars = (this.#view.exemplars ??= new Exemplars(this.#exemplarWidth));
    exemplars.put(row, column, new Exemplar(labelSet, Number(value), Number(timestamp)));
  }

  /** @param {number} row */
  #checkRow(row) {
    if (row >= this.#table.rowCount) throw new RangeError('a row is unknown');
  }
}

/** A custom metric object of another thread. */
class MirrorCustomMetric {
  #number;
  #hookOf;
  /** @type {string | undefined} what its get() returned last, as JSON */
  text = undefined;

  /**
   * @param {number} number
   * @param {string} name
   * @param {HookOf} hookOf
   */
  constructor(number, name, hookOf) {
    this.name = name;
    this.#number = number;
    this.#hookOf = hookOf;
  }

  /**
   * @param {LogReader} record
   * @throws {Error} if it is not one of a custom metric object
   */
  apply(record) {
    if (record.kind !== RECORD.READ) throw new Error('a record is of an unknown kind');
    this.text = record.text;
  }

  /** @throws {Error} if it cannot be read */
  get json() {
    return this.text === undefined ? undefined : parseJson(this.text);
  }

  get() {
    const collected = this.#hookOf(this.#number)?.();
    return collected === undefined ? this.json : collected.then(() => this.json);
  }
}

/** @param {unknown} value */
function checkInteger(value) {
  if (!Number.isSafeInteger(value) || /** @type {number} */ (value) < 0)
    throw new TypeError('a number of a thread is not valid');
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function text(value) {
  if (typeof value !== 'string') throw new TypeError('a text of a thread is not valid');
  return value;
}

/**
 * Checks label names, because one invalid name would make the aggregator refuse all numbers of this process.
 *
 * @param {string[]} names of labels
 * @throws {Error} if one of them is not valid, or occurs twice
 */
function checkNames(names) {
  checkLabelNamesAreValid(names);
  if (new Set(names).size < names.length) throw new Error('a name of a label is there twice');
}

/**
 * @param {any} layout
 * @param {number} width that a table of this layout has
 * @returns {import('../series/layouts').Layout}
 */
function layoutIn({ kind, marks }, width) {
  const layout = layoutFrom(text(kind), Array.from(marks, Number));
  if (layout === undefined || widthOf(layout) !== width) throw new Error('a layout is not valid');
  return layout;
}

module.exports = { MirrorMetric, MirrorCustomMetric, text, checkNames };
