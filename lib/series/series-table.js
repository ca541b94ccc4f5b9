'use strict';

// A metric's numbers: rows of `width` numbers in pages, found through a label index. The path of a recording
// is locate() or find(), pageOf() and offsetOf().

const { LabelIndex, UNKNOWN_LABEL, NOT_PLAIN, plainLabels } = require('./label-index');
const { LabelForms, valueOfKind, setLabel } = require('./label-form');
const { LiveRows } = require('./live-rows');
const { Compaction } = require('./compaction');
const { SeriesLimit } = require('./series-limit');
const { ownBlocks } = require('./number-blocks');
const { firstPage, growPages, pageShiftOf } = require('./number-pages');
const { starting, startingSecond, startsAreRead, countsAreLost } = require('./row-starts');
const { startOf, startsByRow } = require('./row-starts');

const COMPACT_FROM_ROWS = 1024;

/** Means no limit: more rows than an index can have, and a small integer, which is compared quickly. */
const NO_LIMIT = 2 ** 31 - 1;

/** @type {readonly string[]} */
const NO_NAMES = Object.freeze([]);

/** Shared by all tables without labels: applications have hundreds of them. */
const NO_FORMS = new LabelForms(NO_NAMES, new Map());
NO_FORMS.numberOf({});

/** @typedef {Record<string, unknown>} Labels */

/**
 * @typedef {object} RowListener
 * @property {(row: number) => void} rowStarted called for each row that starts (again) from zero
 * @property {() => RowMove} startMove called when the rows are about to get new numbers
 */

/**
 * Is notified of all changes of a table's rows. It may start or stop following the table in any of these
 * calls.
 *
 * @typedef {object} TableFollower
 * @property {boolean} [keepsRows] whether a label set that comes back after its removal gets a new row,
 *   because other threads may not have read the numbers of the old one yet
 * @property {(row: number) => void} [rowStarted] called last for each row that starts (again) from zero
 * @property {(row: number) => void} [rowReset] called after a row was set to zero, and loses its exemplars
 * @property {(row: number, isExpired: boolean) => void} rowRemoved called after a row was removed by the
 *   program, or has expired. Its numbers stay until it starts again
 * @property {() => void} [cleared] called after all rows were removed
 * @property {() => void} [renumbered] called after the rows have got new numbers
 * @property {(place: any, digests: object) => void} [digestPlaced] called when a row of a summary has moved
 *   to other shared memory, a DigestPlace
 * @property {(kind: number, number: number) => void} [bucketsPlaced] called when NativeBuckets has a new page
 * @property {(row: number, column: number, exemplar: import('../metric/exemplar').Exemplar) => void}
 *   [exemplarPut] called for at least one exemplar a second of each number that gets exemplars
 */

/** @type {readonly RowListener[]} */
const NO_LISTENERS = Object.freeze([]);

/** @type {readonly TableFollower[]} */
const NO_FOLLOWERS = Object.freeze([]);

/**
 * Copies what a listener stores for each row, when rows get new numbers.
 *
 * @typedef {object} RowMove
 * @property {(old: number, row: number) => void} copy
 * @property {(rowCount: number) => void} finish called last: from now on the rows have their new numbers
 */

class SeriesTable {
  /** How often rebind() was called. */
  #rebinds = 0;

  /**
   * @param {readonly string[]} labelNames
   * @param {number} width numbers a row
   * @param {number} [maxSeries] see SeriesLimit
   * @param {() => void} [onFirstOverflow] see SeriesLimit
   */
  constructor(labelNames, width, maxSeries = NO_LIMIT, onFirstOverflow) {
    this.width = width;
    /** undefined for a metric without labels: it has one row, 0 */
    this.index = labelNames.length === 0 ? undefined : new LabelIndex(labelNames);
    this.forms = this.index === undefined ? NO_FORMS : new LabelForms(this.index.names, this.index.positions);
    this.pageShift = this.index === undefined ? 0 : pageShiftOf(width);
    this.pageMask = (1 << this.pageShift) - 1;
    /** @type {Float64Array[]} */
    this.pages = [];
    /** Rows that exist, live or not. */
    this.rowCount = 0;
    /** @type {LiveRows | undefined} undefined while all rows are live and in order, as in most tables */
    this.live = undefined;
    this.liveCount = 0;
    /** Row numbers are stable within an epoch. */
    this.epoch = 0;
    /** Changes whenever a handle must bind again: with `changes`, and with each call of rebind(). */
    this.generation = 0;
    /** Rises with each row that is set to zero. NaN if another thread sets them. */
    this.resets = 0;
    /** @type {import('./row-starts').Starts | undefined} undefined if starts are not needed */
    this.starts = undefined;
    /** @type {readonly RowListener[]} store more for each row than numbers */
    this.listeners = NO_LISTENERS;
    /** @type {readonly TableFollower[]} another list if one is added or removed */
    this.followers = NO_FOLLOWERS;
    /** Maximum number of live rows. */
    this.fullAt = NO_LIMIT;
    /** @type {SeriesLimit | undefined} */
    this.limit = undefined;
    if (this.index !== undefined && maxSeries < NO_LIMIT) {
      this.limit = new SeriesLimit(this, maxSeries, onFirstOverflow);
      this.fullAt = maxSeries;
    }
  }

  /** A copy, because the program may change the metric's own array. */
  get labelNames() {
    return this.forms.names;
  }

  /**
   * Returns the live row of a label set; creates it, or revives it from zero, if needed. If the table is
   * full, returns the row of the overflow series.
   *
   * @param {Labels} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  locate(labels) {
    if (this.liveCount >= this.fullAt && this.limit !== undefined) return this.limit.locate(labels);
    return this.start(labels);
  }

  /**
   * The same, even if the table is full.
   *
   * @param {Labels} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  start(labels) {
    const { index } = this;
    if (index === undefined) return isEmpty(labels) ? this.#startOnly() : -1;
    return this.startFound(index.find(labels), labels);
  }

  /**
   * @protected
   * @param {number} row what the index has found
   * @param {Labels} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  startFound(row, labels) {
    if (row < 0) return this.#startNew(row, labels);
    if (this.live === undefined) return row;
    if (!this.live.has(row)) this.#revive(row, this.forms.numberOf(labels));
    this.noteUse(row);
    return row;
  }

  /** @returns {number} the row of a table without labels */
  #startOnly() {
    if (this.rowCount === 0) {
      this.pages = [ownBlocks.take(this.width)];
      this.#stamp(0, 0);
      this.append(this.rowCount++);
    } else if (this.live !== undefined && !this.live.has(0)) {
      this.#revive(0, 0);
    }
    return 0;
  }

  /**
   * @param {number} found result of the index
   * @param {Labels} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  #startNew(found, labels) {
    if (found === UNKNOWN_LABEL) return -1;
    // Its toString() belongs to the program, and may record.
    return found === NOT_PLAIN ? this.start(plainLabels(labels)) : this.#addRow(labels);
  }

  /**
   * The live row of a label set.
   *
   * @param {Labels} labels
   * @returns {number} the row, or -1
   */
  find(labels) {
    const { index } = this;
    let row = index === undefined ? (isEmpty(labels) ? this.rowCount - 1 : -1) : index.find(labels);
    if (row === NOT_PLAIN) row = /** @type {LabelIndex} */ (index).find(plainLabels(labels));
    return row >= 0 && this.isLive(row) ? row : -1;
  }

  /**
   * To be called when a row is used without being located.
   *
   * @param {number} row
   */
  touch(row) {
    this.noteUse(row);
  }

  /**
   * @protected
   * @param {number} row that may change, for a compaction under way
   */
  noteUse(row) {
    this.live?.compaction?.note(row);
  }

  /** Makes children bind to their rows again, although nothing has changed. */
  rebind() {
    this.generation++;
    this.#rebinds++;
  }

  /** After how many seconds an unused row expires; 0 if rows do not expire. */
  get maxIdleSeconds() {
    return 0;
  }

  /** Whether its rows are sums of what several threads or processes had. */
  get isTotal() {
    return false;
  }

  /** Changes whenever a row is removed, or page, offset or digest of one is replaced. */
  get changes() {
    return this.generation - this.#rebinds;
  }

  /** How many rows have expired. */
  get expiredCount() {
    return 0;
  }

  /** @param {number} row */
  isLive(row) {
    return this.live === undefined || this.live.has(row);
  }

  /** @param {number} row */
  pageOf(row) {
    return this.pages[row >> this.pageShift];
  }

  /** @param {number} row */
  offsetOf(row) {
    return (row & this.pageMask) * this.width;
  }

  /**
   * The live rows in order of first use since the last removal.
   *
   * @returns {Generator<number>}
   */
  *liveRows() {
    if (this.live !== undefined) yield* this.live;
    else for (let row = 0; row < this.rowCount; row++) yield row;
  }

  /**
   * @param {number} row
   * @returns {number} the number of its form in `this.forms.list`
   */
  formOf(row) {
    return this.forms.rows.of(row);
  }

  /**
   * @param {number} row
   * @param {number} position
   * @returns {string} the row's value of the label at that position, which it must have
   */
  labelText(row, position) {
    const index = /** @type {LabelIndex} */ (this.index);
    return index.dictionaries[position].values[index.idAt(row, position)];
  }

  /**
   * A fresh object with a row's labels as they were given (as text if they were not primitives).
   *
   * @param {number} row
   * @returns {Record<string, any>}
   */
  labelsOf(row) {
    /** @type {Record<string, any>} */
    const labels = {};
    if (this.index === undefined) return labels;
    const { positions, kinds } = this.forms.list[this.formOf(row)];
    for (let i = 0; i < positions.length; i++) {
      setLabel(
        labels,
        this.labelNames[positions[i]],
        valueOfKind(this.labelText(row, positions[i]), kinds[i]),
      );
    }
    return labels;
  }

  /**
   * Removes a label set. If it is used again, it starts from zero, at the end of the order. Only this method
   * and clear() remove rows.
   *
   * @param {number} row a live one
   * @param {boolean} [isExpired] whether it has expired; otherwise the program removes it
   */
  removeRow(row, isExpired = false) {
    this.#beforeReset();
    this.live ??= LiveRows.all(this.rowCount);
    if (row === this.overflowRow) this.limit?.setRow(-1);
    this.live.remove(row);
    this.liveCount--;
    this.generation++;
    if (this.followers === NO_FOLLOWERS) return;
    const keepsRows = this.followers.some(follower => follower.keepsRows);
    for (const follower of this.followers) follower.rowRemoved(row, isExpired);
    if (!keepsRows) return;
    this.index?.forget(row);
    this.live.compaction?.forget(row);
  }

  /** Removes every label set. Their rows stay, because a gauge that is refilled uses them again. */
  clear() {
    if (this.liveCount === 0) return;
    this.#beforeReset();
    this.live ??= new LiveRows(this.rowCount);
    this.limit?.setRow(-1);
    this.live.clear();
    this.liveCount = 0;
    this.generation++;
    for (const follower of this.followers) follower.cleared?.();
  }

  /**
   * If more than half of a large table's rows are not live, drops these, in steps of 32 rows. Rows get new
   * numbers, and the epoch rises. The table can be used between steps.
   *
   * @returns {Generator<void>}
   */
  *compactionSteps() {
    while (this.live !== undefined && (this.live.compaction !== undefined || this.isSparse)) {
      this.#stepCompaction(this.live);
      yield;
    }
  }

  /** @param {LiveRows} live */
  #stepCompaction(live) {
    const { compaction } = live;
    // Cleared first: if memory runs out below, the compaction is given up.
    live.compaction = undefined;
    // A step of its own, because the memory that it allocates takes as long as hundreds of rows.
    if (compaction === undefined) live.compaction = new Compaction(this, this.labelNames);
    else if (compaction.step()) this.#takeOver(compaction);
    else live.compaction = compaction;
  }

  /** @returns {RowMove[]} move what else is stored for each row, when rows get new numbers */
  startMoves() {
    return this.listeners.map(listener => listener.startMove());
  }

  #beforeReset() {
    if (this.starts !== undefined) countsAreLost();
  }

  /** @param {number} row a live one, which is set to zero */
  resetRow(row) {
    this.#beforeReset();
    this.#stamp(row, this.liveCount - 1);
    this.resets++;
    const offset = this.offsetOf(row);
    this.pageOf(row).fill(0, offset, offset + this.width);
    this.noteUse(row);
    for (const follower of this.followers) follower.rowReset?.(row);
  }

  /**
   * @param {number} row
   * @returns {number} when it started to count, seconds since 1970; 0 if that is unknown
   */
  startAt(row) {
    startsAreRead();
    return startOf(this.starts ?? 0, row);
  }

  /**
   * @param {number} row of a table with `starts`
   * @param {number} second since 1970 in which it began to count
   * @param {number} [others] how many rows are live besides it
   */
  setStart(row, second, others = this.liveCount - 1) {
    const { starts = 0 } = this;
    if (typeof starts !== 'number') starts.set(row, second);
    else if (others === 0) this.starts = second;
    else if (starts !== second) (this.starts = startsByRow(starts, this.rowCount)).set(row, second);
  }

  /**
   * @param {number} row that starts from zero. Called first, because memory may run out
   * @param {number} others how many rows are live besides it
   */
  #stamp(row, others) {
    const { starts } = this;
    if (starts !== undefined && starts !== starting.second) this.setStart(row, startingSecond(), others);
  }

  /**
   * Adds label names. If one of them is new, rows get new numbers, and the epoch rises.
   *
   * @param {readonly string[]} names may include names that the table already has
   */
  addLabelNames(names) {
    const added = names.filter(name => !this.labelNames.includes(name));
    if (added.length === 0) return;
    this.live ??= LiveRows.all(this.rowCount);
    const compaction = new Compaction(this, [...this.labelNames, ...added]);
    while (!compaction.step());
    this.#takeOver(compaction);
  }

  /** Whether the table is large, and rows that are not live are more than half of it. */
  get isSparse() {
    return this.rowCount >= COMPACT_FROM_ROWS && this.liveCount * 2 < this.rowCount;
  }

  /** The overflow series while it is live and there is a limit, else -1. */
  get overflowRow() {
    return this.limit === undefined ? -1 : this.limit.row;
  }

  /** How many look-ups returned the overflow series because the table was full. */
  get overflowCount() {
    return this.limit === undefined ? 0 : this.limit.counter[0];
  }

  /**
   * @param {Labels} labels
   * @returns {number} its row
   */
  #addRow(labels) {
    const { live, rowCount } = this;
    // Label sets that come and go must not pile up in a process that is never scraped. So if a large table is
    // about to grow although most of its rows are dead, it is compacted, a step with each new row.
    const isPowerOfTwo = (rowCount & (rowCount - 1)) === 0;
    if (live !== undefined && (live.compaction !== undefined || (isPowerOfTwo && this.isSparse))) {
      const { epoch } = this;
      this.#stepCompaction(live);
      if (this.epoch !== epoch) return this.start(labels);
    }
    const row = this.rowCount;
    // Pushing to an empty array reserves space for 17 elements, in each of hundreds of metrics.
    if (row === 0) this.pages = [firstPage(this.width)];
    else if (growPages(this.pages, row, this.width, this.pageShift)) this.generation++;
    this.forms.rows.set(row, this.forms.numberOf(labels));
    this.#stamp(row, this.liveCount);
    /** @type {LabelIndex} */ (this.index).add(labels);
    this.rowCount++;
    this.append(row);
    return row;
  }

  /**
   * @param {number} row
   * @param {number} form
   */
  #revive(row, form) {
    const offset = this.offsetOf(row);
    this.pageOf(row).fill(0, offset, offset + this.width);
    if (this.index !== undefined) this.forms.rows.set(row, form);
    this.#stamp(row, this.liveCount);
    this.append(row);
  }

  /**
   * @protected
   * @param {number} row becomes live, at the end of the order
   */
  append(row) {
    if (this.live !== undefined) this.live.append(row);
    if (this.limit !== undefined) this.limit.rowStarted(row);
    this.liveCount++;
    if (this.listeners !== NO_LISTENERS) for (const listener of this.listeners) listener.rowStarted(row);
    if (this.followers !== NO_FOLLOWERS) for (const follower of this.followers) follower.rowStarted?.(row);
  }

  /**
   * Continues with the index and the pages of a compaction.
   *
   * @param {Compaction} compaction
   */
  #takeOver(compaction) {
    const live = compaction.finish();
    const { index, pages, pageShift } = compaction;
    if (this.index === undefined) {
      this.forms = new LabelForms(index.names, index.positions);
      // Its row has no labels.
      this.forms.numberOf({});
    }
    if (this.overflowRow !== -1) this.limit?.setRow(compaction.newRowOf(this.overflowRow));
    this.index = index;
    this.forms.names = index.names;
    this.forms.positions = index.positions;
    this.forms.rows = compaction.rowForms;
    this.starts = compaction.starts;
    this.pages = pages;
    this.pageShift = pageShift;
    this.pageMask = (1 << pageShift) - 1;
    this.live = live;
    this.liveCount = live?.count ?? index.rowCount;
    this.rowCount = index.rowCount;
    this.epoch++;
    this.generation++;
    for (const follower of this.followers) follower.renumbered?.();
  }
}

/** @param {Labels} labels */
function isEmpty(labels) {
  for (const _ in labels) return false;
  return true;
}

module.exports = { SeriesTable };
