'use strict';

// Runs where thread-mirror.js does. A metric of another thread, as far as that thread has published it.

const { VIEW } = require('../registry/metric-view');
const { kindOf, layoutFrom, isLasting } = require('../series/layouts');
const { Exemplar, Exemplars } = require('../metric/exemplar');
const { MirrorDigest } = require('./mirror-digest');
const { MirrorTable } = require('./mirror-table');
const { parseJson } = require('./columns-decoder');
const { JSON_TEXT } = require('./custom-metrics');
const RECORD = require('./log-records');

/** Position of the first label's value in the record of a row. */
const FIRST_VALUE = 4;
/** Position of the block, offset and lengths in the record of a place. */
const PLACE_NUMBERS = 3;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./shared-log').LogReader} LogReader */

/** Loaded on first use: programs without native histograms do not need this file. */
const mirrorBuckets = (/** @type {any} */ { zeroThreshold, maxBuckets }) =>
  new (require('./mirror-buckets').MirrorBuckets)(zeroThreshold, Number(maxBuckets));

class MirrorMetric {
  /** @type {MirrorDigest[]} by row */
  #digests = [];
  /** @type {import('./mirror-digest').Block[]} memory of the digests */
  #blocks = [];
  #table;
  #exemplarWidth;
  /** @type {any} a MetricView */
  #view;

  /** @param {any} definition */
  constructor(definition) {
    const { name, help, type, aggregator, windowed, exemplarWidth } = definition;
    const { labelNames, width, pageShift } = definition;
    const layout = /** @type {any} */ (
      layoutFrom(definition.layout.kind, definition.layout.marks.map(Number))
    );
    const table = (this.#table = new MirrorTable(labelNames, width, pageShift, definition));
    if (isLasting(type)) table.starts = 0;
    const { isComputed, hasBuckets } = kindOf(layout);
    const digestOf = (/** @type {number} */ row) => (this.#digests[row] ??= new MirrorDigest());
    this.#view = {
      ...{ name, help, type, aggregator, layout, table },
      ...(isComputed ? { digestOf, windowed } : {}),
      ...(hasBuckets ? { buckets: mirrorBuckets(definition) } : {}),
    };
    this.name = name;
    this.#exemplarWidth = exemplarWidth;
  }

  /** @returns {MetricView} */
  [VIEW]() {
    return this.#view;
  }

  /**
   * Applies a record about the metric.
   *
   * @param {LogReader} record
   * @param {SharedArrayBuffer | undefined} memory of the record
   */
  apply(record, memory) {
    if (memory !== undefined) {
      this.#setMemory(record, memory);
      return;
    }
    const table = this.#table;
    const row = record.integer(1);
    switch (record.kind) {
      case RECORD.ROW: {
        const idAt = (/** @type {number} */ position) => record.integer(FIRST_VALUE + position);
        table.follow(row, record.integer(3), idAt, () => record.text);
        this.#setStart(row, record.integer(2));
        this.#view.exemplars?.drop(row);
        break;
      }
      case RECORD.RESET:
        this.#setStart(row, record.integer(2));
        this.#view.exemplars?.drop(row);
        break;
      case RECORD.VALUE:
        table.labelSets?.dictionaries[record.integer(1)].values.push(record.text);
        break;
      case RECORD.FORM: {
        const positions = record.integersFrom(1);
        table.forms.list.push({ positions, kinds: positions.map(() => 'string') });
        break;
      }
      case RECORD.REMOVE:
        table.removeRow(row, record.integer(2) === 1);
        this.#view.exemplars?.drop(row);
        break;
      case RECORD.CLEAR:
        table.clear();
        break;
      case RECORD.DIGEST: {
        const [block, offset, bufferLength, listLength] = record.integersFrom(PLACE_NUMBERS);
        this.#view
          .digestOf(row)
          .place(record.integer(2), this.#blocks[block], offset, bufferLength, listLength);
        break;
      }
      case RECORD.EXEMPLAR:
        this.#setExemplar(row, record.integer(2), JSON.parse(record.text));
    }
  }

  /**
   * @param {LogReader} record
   * @param {SharedArrayBuffer} memory
   */
  #setMemory(record, memory) {
    const [byteOffset, length, number] = record.integersFrom(2);
    const numbers = () => new Float64Array(memory, byteOffset, length);
    switch (record.kind) {
      case RECORD.PAGE:
        this.#table.pages[number] = numbers();
        break;
      case RECORD.OVERFLOW:
        this.#table.overflows = numbers();
        break;
      case RECORD.DIGESTS:
        this.#blocks.push({ numbers: numbers(), words: new Int32Array(memory) });
        break;
      default:
        this.#view.buckets.setPage(record.kind - RECORD.HEADS, number, memory);
    }
  }

  /**
   * @param {number} row
   * @param {number} second
   */
  #setStart(row, second) {
    if (this.#table.starts !== undefined) this.#table.setStart(row, second);
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {any} exemplar labels as pairs of name and value, value, timestamp
   */
  #setExemplar(row, column, [labels, value, timestamp]) {
    this.#view.exemplars ??= new Exemplars(this.#exemplarWidth);
    this.#view.exemplars.put(row, column, new Exemplar(Object.fromEntries(labels), Number(value), timestamp));
  }
}

/** A custom metric object of another thread. */
class MirrorCustomMetric {
  /** @type {string | undefined} */
  [JSON_TEXT] = undefined;

  /** @param {{name: string}} definition */
  constructor({ name }) {
    this.name = name;
  }

  /** @param {LogReader} record with what its get() has returned */
  apply(record) {
    this[JSON_TEXT] = record.text;
  }

  /** @throws {Error} if it cannot be read */
  get json() {
    return this[JSON_TEXT] === undefined ? undefined : parseJson(this[JSON_TEXT]);
  }

  /** The thread calls that of the metric object, see lib/threads/hook-requests.js. */
  get() {}
}

module.exports = { MirrorMetric, MirrorCustomMetric };
