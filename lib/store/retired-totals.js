'use strict';

// The totals of ended sources and rows for one metric, by label set: a table of sums, and a table of their
// rounding errors. A merge adds up both like any sources, so no sum falls by one ulp when a source ends.

const { TableSource } = require('./table-source');
const { liveRows } = require('./source-rows');
const { kindOf, widthOf, rulesOf, combined } = require('../series/layouts');
const { mergeDigests } = require('../metric/centroids');
const { roundingError } = require('../series/exact-sum');
const { ONE_PAGE } = require('../series/number-pages');
const { grown } = require('../series/row-array');
const { SeriesTable } = require('../series/series-table');
const { UNKNOWN } = require('../series/row-starts');
const { runThrough } = require('../event-loop/slices');

/** In place of a worker's id. */
const RETIRED = -1;

/** Value of `lastSeen` for a row that stays only as long as others have its label set, or was dropped. */
const FOLDED = -Infinity;

const ROWS_PER_STEP = 64;
const ROWS_PER_LOOK = 8192;

/** Marks numbers in a snapshot as times: when rows were seen last. */
const SEEN = Object.freeze({ batch: 1, isRemoved: false });

const NO_ROWS = new Int32Array(0);

let nextVersion = 1;

/** @typedef {import('../source/log-decoder').Definition} Definition */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./cluster-family').ClusterFamily} ClusterFamily */
/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */

/**
 * What a row has besides numbers. `start`: when it started to count, seconds since 1970; undefined if another
 * part of its source has that. `shown`: the sparse buckets on the last page. Other sources may have lowered
 * their resolution, which must stay low when such a source is gone.
 *
 * @typedef {{start?: number, centroids?: Float64Array, buckets?: Buckets, shown?: Buckets}} RowExtras
 */

/**
 * The digest of one row. It never changes: later observations create a new digest. So a capture recognises a
 * digest that it has already encoded.
 */
class RowDigest {
  /** @param {Float64Array} centroids */
  constructor(centroids) {
    this.centroids = centroids;
    this.version = nextVersion++;
  }

  /** @returns {any[]} as TimeWindowQuantiles.slices() */
  slices() {
    return [{ isEmpty: this.centroids.length === 0, centroids: () => this.centroids }];
  }
}

const NO_OBSERVATIONS = new RowDigest(new Float64Array(0));

class TotalsTable extends SeriesTable {
  /** Overflows of the sources. */
  overflows = 0;

  get overflowCount() {
    return this.overflows;
  }
}

class RetiredTotals {
  /** @type {RowDigest[]} by row */
  #digests = [];
  /** @type {{buckets: Buckets, version: number}[]} by row; an element never changes, like a digest */
  #buckets = [];
  #bucketsByRow = {
    read: (/** @type {number} */ row) => this.#buckets[row]?.buckets,
    changesOf: (/** @type {number} */ row) => this.#buckets[row]?.version,
    empty: () => copiedBuckets(),
  };
  /** @type {Float64Array | undefined} by row and column; undefined as long as there are none */
  #errors = undefined;
  #rules;
  #source;
  /** Generation of the family's rows to which all rows are translated; -1 for none. */
  #translatedTo = -1;
  /** The row for each row of a family, valid for this generation of its rows and this epoch of the table. */
  #rowsInFamily = { rows: NO_ROWS, generation: -1, epoch: -1, rowCount: 0 };

  /**
   * @param {Definition} definition
   * @param {readonly string[]} labelNames
   */
  constructor(definition, labelNames) {
    const { name, help, type, layout, windowed, maxIdleSeconds } = definition;
    this.definition = { ...definition, aggregator: 'sum', labelNames: [...labelNames] };
    this.#rules = rulesOf(layout);
    this.table = new TotalsTable(labelNames, widthOf(layout));
    this.table.starts = UNKNOWN;
    /** @type {number[]} by row: when a source with it ended, or a live source last had it; or FOLDED */
    this.lastSeen = [];
    const { isComputed, hasBuckets } = kindOf(layout);
    /** @type {any} */
    const extras = isComputed
      ? { digestOf: (/** @type {number} */ row) => this.#digestOf(row), windowed }
      : {};
    if (hasBuckets) extras.buckets = this.#bucketsByRow;
    const { table } = this;
    /** @type {MetricView} */
    this.view = { name, help, type, aggregator: 'sum', layout, maxIdleSeconds, table, ...extras };
    this.#source = new TableSource(this.view, RETIRED);
    this.table.listener = {
      // Also for a row that was dropped, because a compaction under way may have copied its digest before.
      rowStarted: row => {
        this.#translatedTo = -1;
        this.#dropExtras(row);
      },
      startMove: () => this.#startMove(),
    };
  }

  /** @returns {boolean} whether nothing is left */
  get isEmpty() {
    return this.table.liveCount + this.table.overflowCount === 0;
  }

  /** @returns {boolean} whether there are totals of dead sources */
  get hasDead() {
    return this.lastSeen.some(seen => seen !== FOLDED);
  }

  /** @returns {number} how many rows are folded */
  get foldedCount() {
    return this.table.liveCount - this.lastSeen.filter(seen => seen !== FOLDED).length;
  }

  /** @returns {MetricView[]} including the rounding errors, if there are any */
  get views() {
    return this.#errors === undefined ? [this.view] : [this.view, this.#viewOf(this.#errorPage())];
  }

  /**
   * @param {Float64Array} page numbers of the table's rows
   * @returns {MetricView}
   */
  #viewOf(page) {
    const { rowCount, liveCount, order, orderLength, width } = this.table;
    const numbers = { rowCount, liveCount, order, orderLength, width, pages: [page] };
    return { ...this.view, numbers, digestOf: undefined, buckets: undefined };
  }

  /** @returns {MetricView[]} for a snapshot: perhaps with one that has when each row was seen */
  get savedViews() {
    const { definition, table } = this;
    if (definition.maxIdleSeconds === 0 && this.foldedCount === 0) return this.views;
    const page = new Float64Array(table.rowCount * table.width);
    for (const row of table.liveRows()) page[row * table.width] = this.lastSeen[row];
    return [...this.views, { ...this.#viewOf(page), ended: SEEN }];
  }

  /**
   * @param {Source} source such a view, as it was restored
   * @param {number} now
   */
  restoreSeen(source, now) {
    const { table } = this;
    for (const row of liveRows(source)) {
      const own = table.find(source.rows.labelsOf(row));
      const seen = source.pages[0][row * table.width];
      const isKnown = seen === FOLDED || (this.definition.maxIdleSeconds > 0 && seen <= now);
      if (own !== -1 && isKnown) this.lastSeen[own] = seen;
    }
  }

  /** @returns {Source[]} the same, as sources */
  sources() {
    const hasDigests = kindOf(this.definition.layout).isComputed && !this.definition.windowed;
    const digestOf = (/** @type {number} */ row) => this.#digestOf(row);
    const { buckets } = this.view;
    const totals = this.#source.read(hasDigests ? { digestOf } : buckets && { buckets });
    if (this.#errors === undefined) return [totals];
    const pages = [this.#errorPage()];
    return [totals, { ...totals, pages, pageShift: ONE_PAGE, starts: undefined, extras: {} }];
  }

  /**
   * @param {ClusterFamily} family
   * @returns {Int32Array} by row: the family's row
   */
  familyRows(family) {
    const { generation } = family.rows;
    if (this.#translatedTo !== generation) runThrough(family.translate(this.#source.read()));
    this.#translatedTo = generation;
    return this.#source.read().rows.rows;
  }

  /**
   * @param {ClusterFamily} family
   * @param {number} familyRow
   * @returns {number} the row with the same label set, or -1
   */
  rowIn(family, familyRow) {
    const { table } = this;
    const { generation, epoch, rowCount } = this.#rowsInFamily;
    if (generation !== family.rows.generation || epoch !== table.epoch || rowCount !== table.rowCount)
      this.#invert(family);
    const row = this.#rowsInFamily.rows[familyRow] ?? -1;
    return row !== -1 && table.isLive(row) ? row : -1;
  }

  /** @param {ClusterFamily} family */
  #invert(family) {
    const { rowCount, epoch } = this.table;
    const familyRows = this.familyRows(family);
    const rows = new Int32Array(family.rows.count).fill(-1);
    for (const row of this.table.liveRows()) rows[familyRows[row]] = row;
    this.#rowsInFamily = { rows, generation: family.rows.generation, epoch, rowCount };
  }

  /** @param {number} row */
  #digestOf(row) {
    return this.#digests[row] ?? NO_OBSERVATIONS;
  }

  /**
   * Adds a row of a source that has ended.
   *
   * @param {Record<string, string>} labels
   * @param {Float64Array} columns
   * @param {number} at position of the row's numbers
   * @param {RowExtras} extras
   * @param {number} seen milliseconds, by a clock that never jumps; FOLDED if the row's source lives
   * @returns {number} the row of the totals
   */
  add(labels, columns, at, extras, seen) {
    const { liveCount } = this.table;
    const row = this.table.start(labels);
    this.#addTo(row, this.table.liveCount > liveCount, columns, at, extras, seen);
    return row;
  }

  /**
   * The same, without looking up the label set if the totals already have it.
   *
   * @param {ClusterFamily} family to which the source's rows are translated
   * @param {Source} source
   * @param {number} sourceRow
   * @param {Float64Array} columns
   * @param {number} at
   * @param {RowExtras} extras
   * @param {number} seen
   */
  addFrom(family, { rows }, sourceRow, columns, at, extras, seen) {
    const familyRow = rows.rows[sourceRow];
    const row = this.rowIn(family, familyRow);
    if (row !== -1) {
      this.#addTo(row, false, columns, at, extras, seen);
      return;
    }
    const added = this.add(rows.labelsOf(sourceRow), columns, at, extras, seen);
    const known = this.#rowsInFamily;
    if (familyRow >= known.rows.length) known.rows = grown(known.rows, familyRow + 1, -1);
    known.rows[familyRow] = added;
    known.rowCount = this.table.rowCount;
  }

  /**
   * @param {number} row
   * @param {boolean} isNew
   * @param {Float64Array} columns
   * @param {number} at
   * @param {RowExtras} extras
   * @param {number} seen
   */
  #addTo(row, isNew, columns, at, { start, centroids, buckets, shown }, seen) {
    const { table } = this;
    const rules = this.#rules;
    if (isNew || seen !== FOLDED) this.lastSeen[row] = seen;
    if (isNew) table.setStart(row, start ?? UNKNOWN);
    else if (start !== undefined) table.setStart(row, Math.min(start, table.startAt(row)));
    const page = table.pageOf(row);
    const offset = table.offsetOf(row);
    for (let column = 0; column < table.width; column++) {
      const rule = isNew ? 'sum' : (rules?.[column] ?? 'sum');
      const before = page[offset + column];
      const added = columns[at + column];
      const total = combined(rule, before, added);
      page[offset + column] = total;
      if (rule === 'sum') this.#addError(row, column, roundingError(before, added, total));
    }
    const isMerged = centroids !== undefined && centroids.length > 0 && !this.definition.windowed;
    if (isMerged) this.#addDigest(row, centroids);
    if (buckets !== undefined) {
      // Loaded on first use: programs without native histograms do not need this file.
      const { mergeBuckets, coarsened } = require('../series/merged-buckets');
      const before = this.#buckets[row]?.buckets;
      const total = before === undefined ? buckets : mergeBuckets([before, buckets]);
      this.#buckets[row] = { buckets: coarsened(total, shown ?? total), version: nextVersion++ };
    }
  }

  /**
   * Adds a row of a table.
   *
   * @param {MetricView} view of the table
   * @param {number} row
   * @param {Record<string, string>} defaults default labels of its registry
   * @param {number} now milliseconds, by a clock that never jumps
   */
  addRow({ table, digestOf, buckets }, row, defaults, now) {
    const extras = {
      start: table.starts && table.startAt(row),
      centroids: digestOf?.(row).slices()[0]?.centroids(),
      buckets: buckets?.read(row),
    };
    const labels = { ...defaults, ...table.labelsOf(row) };
    this.add(labels, table.pageOf(row), table.offsetOf(row), extras, now);
  }

  /** @param {number} row */
  #dropExtras(row) {
    if (row < this.#digests.length) delete this.#digests[row];
    if (row < this.#buckets.length) delete this.#buckets[row];
    const { width } = this.table;
    this.#errors?.fill(0, row * width, (row + 1) * width);
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {number} error NaN if the total is infinite
   */
  #addError(row, column, error) {
    if (error === 0 || !Number.isFinite(error)) return;
    const { width } = this.table;
    this.#errors = withSpace(this.#errors, (row + 1) * width);
    this.#errors[row * width + column] += error;
  }

  /**
   * The rounding errors, laid out like the numbers of the table. A merge combines both by the rule of each
   * column, so columns that are not added up have the same values in both.
   *
   * @returns {Float64Array}
   */
  #errorPage() {
    const { table } = this;
    const { width } = table;
    const errors = (this.#errors = withSpace(this.#errors, table.rowCount * width));
    const others = this.#rules?.flatMap((rule, column) => (rule === 'sum' ? [] : [column])) ?? [];
    for (const row of others.length > 0 ? table.liveRows() : [])
      for (const column of others)
        errors[row * width + column] = table.pageOf(row)[table.offsetOf(row) + column];
    return errors;
  }

  /**
   * @param {number} row
   * @param {Float64Array} centroids
   */
  #addDigest(row, centroids) {
    const present = this.#digestOf(row).centroids;
    const merged = present.length === 0 ? centroids.slice() : mergeDigests([present, centroids]);
    this.#digests[row] = new RowDigest(merged);
    // An encoded digest has been replaced, so captures must read it again.
    this.table.generation++;
  }

  /**
   * Drops the rows that were not seen since a given time.
   *
   * @param {number} oldest
   * @returns {Generator<void>} yields where a slice may end
   */
  *expire(oldest) {
    let dropped = 0;
    for (let row = 0; row < this.lastSeen.length; row++) {
      if (this.lastSeen[row] >= oldest || this.lastSeen[row] === FOLDED) continue;
      this.remove(row);
      if (++dropped % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * Drops folded rows.
   *
   * @param {(row: number) => boolean} isGone whether no source has the label set of a row
   * @returns {Generator<void>} yields where a slice may end
   */
  *removeFolded(isGone) {
    const { lastSeen, table } = this;
    for (let row = 0; row < lastSeen.length; row++) {
      if ((row + 1) % ROWS_PER_LOOK === 0) yield;
      if (lastSeen[row] === FOLDED && isGone(row) && table.isLive(row)) this.remove(row);
    }
  }

  /** @param {number} row that has totals */
  remove(row) {
    this.table.removeRow(row);
    this.lastSeen[row] = FOLDED;
    this.#dropExtras(row);
  }

  /** @returns {import('../series/series-table').RowMove} */
  #startMove() {
    /** @type {RowDigest[]} */
    const digests = [];
    /** @type {{buckets: Buckets, version: number}[]} */
    const buckets = [];
    /** @type {number[]} by row: its number before */
    const before = [];
    const { width } = this.table;
    /** @type {Float64Array | undefined} */
    let errors = undefined;
    return {
      copy: (old, row) => {
        if (this.#digests[old] === undefined) delete digests[row];
        else digests[row] = this.#digests[old];
        if (this.#buckets[old] === undefined) delete buckets[row];
        else buckets[row] = this.#buckets[old];
        before[row] = old;
        if (this.#errors === undefined) return;
        errors = withSpace(errors, (row + 1) * width);
        errors.set(this.#errors.subarray(old * width, (old + 1) * width), row * width);
      },
      finish: () => {
        this.#translatedTo = -1;
        this.#digests = digests;
        this.#buckets = buckets;
        this.#errors = errors;
        // Rows may have been folded since.
        this.lastSeen = before.map(row => this.lastSeen[row]);
      },
    };
  }
}

/** Buckets of rows that have ended, see ended-rows.js. */
function copiedBuckets() {
  /** @type {Buckets[]} */
  const rows = [];
  return {
    read: (/** @type {number} */ row) => rows[row],
    changesOf: () => 1,
    copyRow: (/** @type {number} */ row, /** @type {any} */ from, /** @type {number} */ old) =>
      void (rows[row] = from.read(old)),
  };
}

/**
 * @param {Float64Array | undefined} numbers
 * @param {number} length
 * @returns {Float64Array} the same, or a longer copy
 */
function withSpace(numbers, length) {
  if (numbers !== undefined && numbers.length >= length) return numbers;
  const larger = new Float64Array(Math.max(length, (numbers?.length ?? 0) * 2));
  if (numbers !== undefined) larger.set(numbers);
  return larger;
}

module.exports = { RetiredTotals, FOLDED };
