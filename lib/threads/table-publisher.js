'use strict';

// Runs in a thread that has joined. Publishes one table: its pages as shared memory, and each change of its
// rows as a record of the log, before the number that caused it is recorded.

const { isSharedArrayBuffer } = require('node:util/types');
const { SharedDigests } = require('./shared-digests');
const RECORD = require('../source/log-records');

/** Position of the first label's value in the record of a row. */
const VALUES = 4;

/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('../series/series-table').TableFollower} TableFollower */
/** @typedef {import('./shared-digests').DigestPlace} DigestPlace */

/** @implements {TableFollower} */
class TablePublisher {
  #view;
  #thread;
  #log;
  #onRenumbered;
  /** @type {Float64Array[]} that were published */
  #pages = [];
  /** How many forms were published. */
  #forms = 0;
  /** @type {number[]} by label: how many of its values were published */
  #values;
  /** @type {number[]} the record of a row */
  #row;
  #isClosed = false;
  /** @type {SharedDigests | undefined} of a summary */
  #digests = undefined;
  /** @type {Float64Array[]} published memory of its digests */
  #blocks = [];

  /**
   * @param {import('../exposition/live-family').MetricView} view of the metric
   * @param {number} number of the metric
   * @param {import('./thread-publisher').ThreadPublisher} thread whose shorten() may close this publisher
   * @param {() => void} onRenumbered
   */
  constructor(view, number, thread, onRenumbered) {
    const { table } = view;
    this.table = table;
    // Rows of other metrics leave nothing when they are removed.
    this.keepsRows = table.starts !== undefined;
    this.number = number;
    this.#view = view;
    this.#thread = thread;
    this.#log = /** @type {import('../source/shared-log').LogWriter} */ (thread.log);
    this.#onRenumbered = onRenumbered;
    // The first value of each label means that the label is missing.
    this.#values = table.labelNames.map(() => 1);
    this.#row = [number, 0, 0, 0, ...table.labelNames.map(() => 0)];
  }

  /** Publishes all rows, and follows the table from now on. */
  open() {
    const { table, digestOf, exemplars, buckets } = this.#view;
    for (let page = 0; page < table.pages.length; page++) this.#publishPage(page);
    if (buckets !== undefined) this.#shareBuckets(buckets);
    for (let row = 0; row < table.rowCount; row++) this.#publishRow(row);
    if (table.live !== undefined) {
      // The live ones again, in their order.
      this.#log.append(RECORD.CLEAR, [this.number]);
      for (const row of table.live) this.#publishRow(row);
    }
    if (table.limit !== undefined) {
      table.limit.counter = this.#shared(table.limit.counter);
      this.#publishMemory(RECORD.OVERFLOW, table.limit.counter);
    }
    table.followers = [...table.followers, this];
    if (digestOf !== undefined) this.#shareDigests();
    for (const { row, column, slot } of exemplars?.slots() ?? [])
      this.#publishExemplar(row, column, slot.exemplar);
  }

  /** @param {import('../series/native-buckets').NativeBuckets} buckets */
  #shareBuckets(buckets) {
    buckets.share(this.table);
    buckets.pagesByKind.forEach((pages, kind) => pages.forEach((_, i) => this.#publishBuckets(kind, i)));
  }

  #shareDigests() {
    const { table } = this;
    const digests = SharedDigests.of(table);
    // Digests that another publisher has already shared.
    for (const place of digests.published) this.#publishDigest(place);
    this.#digests = digests;
    for (const row of table.liveRows()) this.#shareDigest(row);
  }

  /** @param {number} row */
  #shareDigest(row) {
    /** @type {any} */ (this.#view.digestOf)(row).share(this.#digests, row);
  }

  /** The numbers stay in shared memory. */
  close() {
    this.#isClosed = true;
    this.table.followers = this.table.followers.filter(follower => follower !== this);
  }

  /** @param {number} row */
  rowStarted(row) {
    // If the metric is in two registries, the table's other publisher may have closed this one.
    if (this.#isClosed) return;
    // Not through #guard(), because creating a function takes 3 % of the time of a new label set.
    try {
      const page = row >> this.table.pageShift;
      if (this.#pages[page] !== this.table.pages[page]) this.#publishPage(page);
      this.#publishRow(row);
      if (this.#digests !== undefined) this.#shareDigest(row);
      this.#thread.shorten();
    } catch (error) {
      this.#thread.fail(error);
    }
  }

  /**
   * @param {DigestPlace} place
   * @param {object} digests to which it belongs
   */
  digestPlaced(place, digests) {
    // If the rows have new numbers, the digests of the next publisher may be reported before this one is
    // closed.
    if (this.#digests === digests) this.#guard(() => this.#publishDigest(place));
  }

  /**
   * @param {number} kind
   * @param {number} number of the page
   */
  bucketsPlaced(kind, number) {
    this.#guard(() => this.#publishBuckets(kind, number));
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {import('../metric/exemplar').Exemplar} exemplar
   */
  exemplarPut(row, column, exemplar) {
    this.#guard(() => this.#publishExemplar(row, column, exemplar));
    this.#guard(this.#thread.shorten);
  }

  /** @param {number} row */
  rowReset(row) {
    this.#guard(() => this.#log.append(RECORD.RESET, [this.number, row, this.table.startAt(row)]));
    this.#guard(this.#thread.shorten);
  }

  /**
   * @param {number} row
   * @param {boolean} isExpired
   */
  rowRemoved(row, isExpired) {
    this.#guard(() => this.#log.append(RECORD.REMOVE, [this.number, row, Number(isExpired)]));
  }

  cleared() {
    this.#guard(() => this.#log.append(RECORD.CLEAR, [this.number]));
  }

  renumbered() {
    this.#guard(this.#onRenumbered);
  }

  /** @param {() => void} publish */
  #guard(publish) {
    if (!this.#isClosed) this.#thread.guard(publish);
  }

  /** @param {number} number */
  #publishPage(number) {
    const { pages } = this.table;
    const page = this.#shared(pages[number]);
    // Children must bind to the new page.
    if (page !== pages[number]) this.table.generation++;
    this.#pages[number] = pages[number] = page;
    this.#publishMemory(RECORD.PAGE, page, number);
  }

  /**
   * @param {Float64Array} numbers
   * @returns {Float64Array} the same in shared memory, where other threads of the process read them. Pages
   *   that the table creates later are moved as soon as they exist, before anything is recorded in them
   */
  #shared(numbers) {
    if (isSharedArrayBuffer(numbers.buffer)) return numbers;
    const shared = this.#thread.blocks.take(numbers.length);
    shared.set(numbers);
    return shared;
  }

  /**
   * @param {number} kind of the record
   * @param {Float64Array | Int32Array} memory
   * @param {number} [number] of the page
   * @throws {Error} if it is not shared: there was no memory for that
   */
  #publishMemory(kind, { buffer, byteOffset, length }, number = 0) {
    if (!isSharedArrayBuffer(buffer)) throw new RangeError('there is no shared memory');
    const memory = this.#thread.memoryNumber(buffer);
    this.#log.append(kind, [this.number, memory, byteOffset, length, number]);
  }

  /**
   * @param {number} kind
   * @param {number} number of the page
   */
  #publishBuckets(kind, number) {
    const { pagesByKind } = /** @type {any} */ (this.#view.buckets);
    this.#publishMemory(RECORD.HEADS + kind, pagesByKind[kind][number], number);
  }

  /** @param {number} row */
  #publishRow(row) {
    const { index } = this.table;
    const record = this.#row;
    record[1] = row;
    record[2] = this.table.startAt(row);
    // Part of the row's record, because a separate record takes 0.2 µs.
    let newValue = '';
    let hasNewValue = false;
    if (index !== undefined) {
      record[3] = this.#formOf(row);
      for (let position = 0; position < index.width; position++) {
        const id = index.idAt(row, position);
        record[VALUES + position] = id;
        const { values } = index.dictionaries[position];
        const published = this.#values[position];
        if (values.length === published) continue;
        if (hasNewValue || id !== published || values.length > published + 1) {
          this.#publishValues(position, values);
          continue;
        }
        hasNewValue = true;
        newValue = values[id];
        this.#values[position]++;
      }
    }
    this.#log.append(RECORD.ROW, record, newValue);
  }

  /** @param {DigestPlace} place */
  #publishDigest({ row, slice, block, offset, bufferLength, listLength }) {
    const { numbers } = /** @type {import('./shared-digests').Block} */ (block);
    let number = this.#blocks.lastIndexOf(numbers);
    if (number === -1) {
      number = this.#blocks.push(numbers) - 1;
      this.#publishMemory(RECORD.DIGESTS, numbers);
    }
    this.#log.append(RECORD.DIGEST, [this.number, row, slice, number, offset, bufferLength, listLength]);
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {import('../metric/exemplar').Exemplar} exemplar
   */
  #publishExemplar(row, column, { labelSet, value, timestamp }) {
    const labels = Object.keys(labelSet).map(name => [name, String(labelSet[name])]);
    this.#log.append(RECORD.EXEMPLAR, [this.number, row, column], JSON.stringify([labels, value, timestamp]));
  }

  /** @param {number} row */
  #formOf(row) {
    const { forms } = this.table;
    for (; this.#forms < forms.list.length; this.#forms++) {
      const { positions, kinds } = forms.list[this.#forms];
      this.#log.append(RECORD.FORM, [this.number, ...positions.filter((_, i) => kinds[i] !== 'undefined')]);
    }
    return forms.rows.of(row);
  }

  /**
   * @param {number} position
   * @param {readonly string[]} values
   */
  #publishValues(position, values) {
    for (; this.#values[position] < values.length; this.#values[position]++)
      this.#log.append(RECORD.VALUE, [this.number, position], values[this.#values[position]]);
  }
}

module.exports = { TablePublisher };
