'use strict';

// The totals of ended sources and rows for one metric, by label set: a table of sums, and a table of their
// rounding errors. A merge adds up both like any sources, so no sum falls by one ulp when a source ends.

const { TableSource } = require('./table-source');
const { kindOf, widthOf, rulesOf, combined } = require('../series/layouts');
const { mergeDigests } = require('../metric/centroids');
const { roundingError } = require('../series/exact-sum');
const { ONE_PAGE } = require('../series/number-pages');
const { withSpace } = require('../series/row-array');
const { SeriesTable } = require('../series/series-table');
const { UNKNOWN } = require('../series/row-starts');

/** In place of a worker's id. */
const RETIRED = -1;

/** Value of `lastSeen` for a row that stays only as long as others have its label set, or was dropped. */
const FOLDED = -Infinity;

const ROWS_PER_STEP = 64;

/** Marks numbers in a snapshot as times: when rows were seen last. */
const SEEN = Object.freeze({ batch: 1, isRemoved: false });

const NO_CENTROIDS = new Float64Array(0);

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
 * The digest or the sparse buckets of one row. They never change: later observations create new ones. So a
 * capture recognises what it has already encoded.
 */
class Extra {
  version = nextVersion++;

  /**
   * @param {Float64Array} centroids
   * @param {Buckets} [buckets]
   */
  constructor(centroids, buckets) {
    this.centroids = centroids;
    this.buckets = buckets;
  }

  /** @returns {any[]} as TimeWindowQuantiles.slices() */
  slices() {
    return [{ isEmpty: this.centroids.length === 0, centroids: () => this.centroids }];
  }
}

const NO_OBSERVATIONS = new Extra(NO_CENTROIDS);

class TotalsTable extends SeriesTable {
  /** Overflows of the sources. */
  overflows = 0;

  get overflowCount() {
    return this.overflows;
  }

  get isTotal() {
    return true;
  }
}

class RetiredTotals {
  /** @type {Extra[]} by row */
  #extras = [];
  /** @type {Float64Array | undefined} by row and column; undefined as long as there are none */
  #errors = undefined;
  #rules;
  #onRemoved;
  #source;

  /**
   * @param {Definition} definition
   * @param {readonly string[]} labelNames
   * @param {() => void} onRemoved called when a row was removed
   */
  constructor(definition, labelNames, onRemoved) {
    const { layout, windowed } = definition;
    this.definition = { ...definition, aggregator: 'sum', labelNames: [...labelNames] };
    this.#rules = rulesOf(layout);
    this.#onRemoved = onRemoved;
    this.table = new TotalsTable(labelNames, widthOf(layout));
    this.table.starts = UNKNOWN;
    /** @type {number[]} by row: when a source with it ended, or a live source last had it; or FOLDED */
    this.lastSeen = [];
    /** By row: the family's row, as translated last. */
    this.familyRows = new Int32Array(0);
    const { isComputed, hasBuckets } = kindOf(layout);
    const buckets = {
      read: (/** @type {number} */ row) => this.#extras[row]?.buckets,
      changesOf: (/** @type {number} */ row) => this.#extras[row]?.version,
      empty: () => copiedBuckets(),
    };
    /** @type {any} */
    const view = { ...this.definition, table: this.table };
    // Of a sliding window, no digest is kept.
    if (isComputed && !windowed) view.digestOf = (/** @type {number} */ row) => this.#digestOf(row);
    if (hasBuckets) view.buckets = buckets;
    /** @type {MetricView} */
    this.view = view;
    this.#source = new TableSource(this.view, RETIRED);
    const listener = {
      // Also for a row that was dropped, because a compaction under way may have copied its digest before.
      rowStarted: (/** @type {number} */ row) => this.#dropExtras(row),
      startMove: () => this.#startMove(),
    };
    this.table.listeners = [listener];
  }

  /** @returns {boolean} whether nothing is left */
  get isEmpty() {
    return this.table.liveCount + this.table.overflowCount === 0;
  }

  /** @returns {boolean} whether there are totals of dead sources */
  get hasDead() {
    return this.lastSeen.some(seen => seen !== FOLDED);
  }

  /** @returns {MetricView[]} including the rounding errors, if there are any */
  get views() {
    return this.#errors === undefined
      ? [this.view]
      : [this.view, this.#viewOf(this.#errorsTo(this.table.rowCount))];
  }

  /**
   * @param {Float64Array} page numbers of the table's rows
   * @returns {MetricView}
   */
  #viewOf(page) {
    const { rowCount, liveCount, live, width } = this.table;
    const numbers = { rowCount, liveCount, live, width, pages: [page] };
    return { ...this.view, numbers, digestOf: undefined, buckets: undefined };
  }

  /** @returns {MetricView[]} for a snapshot: perhaps with one that has when each row was seen */
  get savedViews() {
    const { definition, table } = this;
    const hasFolded = this.lastSeen.some((seen, row) => seen === FOLDED && table.isLive(row));
    if (definition.maxIdleSeconds === 0 && !hasFolded) return this.views;
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
    for (const row of source.order) {
      const own = table.find(source.rows.labelsOf(row));
      const seen = source.pages[0][row * table.width];
      const isKnown = seen === FOLDED || (this.definition.maxIdleSeconds > 0 && seen <= now);
      if (own !== -1 && isKnown) this.lastSeen[own] = seen;
    }
  }

  /** @returns {Source[]} the same, as sources */
  sources() {
    const digestOf = this.view.digestOf && ((/** @type {number} */ row) => this.#digestOf(row));
    const totals = this.#source.read({ digestOf, buckets: this.view.buckets });
    if (this.#errors === undefined) return [totals];
    const pages = [this.#errorsTo(this.table.rowCount)];
    return [totals, { ...totals, pages, pageShift: ONE_PAGE, starts: undefined, extras: {} }];
  }

  /**
   * @param {ClusterFamily} family
   * @returns {Generator<void>} yields where a slice may end
   */
  *translate(family) {
    const source = this.#source.read();
    yield* family.translate(source);
    this.familyRows = source.rows.rows;
  }

  /** @param {number} row */
  #digestOf(row) {
    return this.#extras[row] ?? NO_OBSERVATIONS;
  }

  /**
   * Adds a row of a source that has ended.
   *
   * @param {Record<string, string>} labels
   * @param {Float64Array} columns
   * @param {number} at position of the row's numbers
   * @param {RowExtras} extras
   * @param {number} seen milliseconds, by a clock that never jumps; FOLDED if the row's source lives
   */
  add(labels, columns, at, { start, centroids = NO_CENTROIDS, buckets, shown }, seen) {
    const { table } = this;
    const { liveCount, width } = table;
    const row = table.start(labels);
    const isNew = table.liveCount > liveCount;
    if (isNew || seen !== FOLDED) this.lastSeen[row] = seen;
    if (isNew) table.setStart(row, start ?? UNKNOWN);
    else if (start !== undefined) table.setStart(row, Math.min(start, table.startAt(row)));
    const page = table.pageOf(row);
    const offset = table.offsetOf(row);
    for (let column = 0; column < width; column++) {
      const rule = this.#rules?.[column] ?? 'sum';
      const before = page[offset + column];
      const added = columns[at + column];
      const total = combined(isNew ? 'sum' : rule, before, added);
      page[offset + column] = total;
      const error = roundingError(before, added, total);
      if (rule !== 'sum') this.#errorsTo(row + 1)[row * width + column] = total;
      // It is NaN if the total is infinite.
      else if (error !== 0 && Number.isFinite(error)) this.#errorsTo(row + 1)[row * width + column] += error;
    }
    if (centroids.length > 0 && !this.definition.windowed) this.#addDigest(row, centroids);
    if (buckets !== undefined) {
      // Loaded on first use: programs without native histograms do not need this file.
      const { mergeBuckets, coarsened } = require('../series/merged-buckets');
      const before = this.#extras[row]?.buckets;
      const total = before === undefined ? buckets : mergeBuckets([before, buckets]);
      this.#extras[row] = new Extra(NO_CENTROIDS, coarsened(total, shown ?? total));
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
    if (row < this.#extras.length) delete this.#extras[row];
    const { width } = this.table;
    this.#errors?.fill(0, row * width, (row + 1) * width);
  }

  /**
   * The rounding errors, laid out like the numbers of the table. A merge combines both by the rule of each
   * column, so columns that are not added up have the same values in both.
   *
   * @param {number} rowCount
   * @returns {Float64Array} with space for so many rows
   */
  #errorsTo(rowCount) {
    return (this.#errors = withSpace(this.#errors, rowCount * this.table.width));
  }

  /**
   * @param {number} row
   * @param {Float64Array} centroids
   */
  #addDigest(row, centroids) {
    const present = this.#digestOf(row).centroids;
    const merged = present.length === 0 ? centroids.slice() : mergeDigests([present, centroids]);
    this.#extras[row] = new Extra(merged);
    // An encoded digest has been replaced, so captures must read it again.
    this.table.generation++;
  }

  /**
   * Drops the rows that were not seen since a given time.
   *
   * @param {number} oldest
   * @returns {Generator<void>} yields where a slice may end
   */
  expire(oldest) {
    return this.#removeRows((row, seen) => seen !== FOLDED && seen < oldest);
  }

  /**
   * Drops folded rows.
   *
   * @param {(row: number) => boolean} isGone whether no source has the label set of a row
   * @returns {Generator<void>} yields where a slice may end
   */
  removeFolded(isGone) {
    return this.#removeRows((row, seen) => seen === FOLDED && isGone(row));
  }

  /**
   * @param {(row: number, seen: number) => boolean} isGone
   * @returns {Generator<void>} yields where a slice may end
   */
  *#removeRows(isGone) {
    const { lastSeen, table } = this;
    let removed = 0;
    for (let row = 0; row < lastSeen.length; row++) {
      if (!isGone(row, lastSeen[row]) || !table.isLive(row)) continue;
      this.remove(row);
      if (++removed % ROWS_PER_STEP === 0) yield;
    }
  }

  /** @param {number} row that has totals */
  remove(row) {
    this.table.removeRow(row);
    this.lastSeen[row] = FOLDED;
    this.#dropExtras(row);
    this.#onRemoved();
  }

  /** @returns {import('../series/series-table').RowMove} */
  #startMove() {
    /** @type {Extra[]} */
    const extras = [];
    /** @type {number[]} by row: its number before */
    const before = [];
    const { width } = this.table;
    /** @type {Float64Array | undefined} */
    let errors = undefined;
    return {
      copy: (old, row) => {
        if (this.#extras[old] === undefined) delete extras[row];
        else extras[row] = this.#extras[old];
        before[row] = old;
        if (this.#errors === undefined) return;
        errors = withSpace(errors, (row + 1) * width);
        errors.set(this.#errors.subarray(old * width, (old + 1) * width), row * width);
      },
      finish: () => {
        this.#extras = extras;
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

module.exports = { RetiredTotals, FOLDED };
