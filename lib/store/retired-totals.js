'use strict';

// What ended sources had counted in one metric, by label sets: a table of totals, and one of their rounding
// errors. A merge adds up both as it adds up any sources, so no sum falls by one ulp when a source ends.

const { TableSource } = require('./table-source');
const { kindOf, widthOf, rulesOf, combined } = require('../series/layouts');
const { mergeDigests } = require('../metric/centroids');
const { roundingError } = require('../series/exact-sum');
const { SeriesTable } = require('../series/series-table');
const { UNKNOWN } = require('../series/row-starts');

/** In place of a worker's id. */
const RETIRED = -1;

/** When a row was seen that has been dropped. */
const DROPPED = Infinity;

const ROWS_PER_STEP = 64;

let nextVersion = 1;

/** @typedef {import('../source/log-decoder').Definition} Definition */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */

/**
 * What a row has besides numbers: when it began to count, seconds since 1970, undefined if others of its
 * source say that; its digest; its sparse buckets, and those that were on the last page. Other sources may
 * have made these coarser, and they must stay so when such a source is gone.
 *
 * @typedef {{start?: number, centroids?: Float64Array, buckets?: Buckets, shown?: Buckets}} RowExtras
 */

/**
 * The digest of one row. It never changes: later observations become part of another one. So a capture that
 * has encoded it already sees that, and has each of them once.
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
  /** That of the sources. */
  overflows = 0;

  get overflowCount() {
    return this.overflows;
  }
}

class RetiredTotals {
  /** @type {RowDigest[]} by row */
  #digests = [];
  /** @type {{buckets: Buckets, version: number}[]} by row; one never changes, like a digest */
  #buckets = [];
  #bucketsByRow = {
    read: (/** @type {number} */ row) => this.#buckets[row]?.buckets,
    changesOf: (/** @type {number} */ row) => this.#buckets[row]?.version,
  };
  /** @type {number[]} by row: when a source with it ended, or a live one had it last */
  #lastSeen = [];
  #rules;
  #errors;
  #source;
  #errorSource;

  /**
   * @param {Definition} definition
   * @param {readonly string[]} labelNames
   */
  constructor(definition, labelNames) {
    const { name, help, type, layout, windowed } = definition;
    const width = widthOf(layout);
    this.definition = { ...definition, aggregator: 'sum', labelNames: [...labelNames] };
    this.#rules = rulesOf(layout);
    this.table = new TotalsTable(labelNames, width);
    this.table.starts = UNKNOWN;
    this.#errors = new SeriesTable(labelNames, width);
    const viewOf = (/** @type {SeriesTable} */ table, /** @type {(row: number) => RowDigest} */ digestOf) => {
      const more = kindOf(layout).isComputed ? { digestOf, windowed } : {};
      return /** @type {any} */ ({ name, help, type, aggregator: 'sum', layout, table, ...more });
    };
    /** @type {MetricView} */
    this.view = viewOf(this.table, row => this.#digestOf(row));
    if (kindOf(layout).hasBuckets) this.view.buckets = /** @type {any} */ (this.#bucketsByRow);
    /** @type {MetricView} digests and buckets belong to the totals alone */
    this.errorView = viewOf(this.#errors, () => NO_OBSERVATIONS);
    this.#source = new TableSource(this.view, RETIRED);
    this.#errorSource = new TableSource(this.errorView, RETIRED);
    this.table.listener = {
      // Also if it was dropped: a compaction under way may have copied its digest before.
      rowStarted: row => this.#dropExtras(row),
      startMove: () => this.#startMove(),
    };
  }

  /** @returns {boolean} whether nothing is left of what was added */
  get isEmpty() {
    return this.table.liveCount + this.table.overflowCount === 0;
  }

  /** @returns {MetricView[]} with that of the rounding errors if there are any */
  get views() {
    return this.#errors.liveCount === 0 ? [this.view] : [this.view, this.errorView];
  }

  /** @returns {Source[]} the same as sources */
  sources() {
    const hasDigests = kindOf(this.definition.layout).isComputed && !this.definition.windowed;
    const digestOf = (/** @type {number} */ row) => this.#digestOf(row);
    const { buckets } = this.view;
    const totals = this.#source.read(hasDigests ? { digestOf } : buckets && { buckets });
    return this.#errors.liveCount === 0 ? [totals] : [totals, this.#errorSource.read()];
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
   * @param {number} at where those of the row are
   * @param {RowExtras} extras
   * @param {number} now milliseconds, by a clock that never jumps
   */
  add(labels, columns, at, { start, centroids, buckets, shown }, now) {
    const { table } = this;
    const rules = this.#rules;
    const { liveCount } = table;
    const row = table.start(labels);
    const isNew = table.liveCount > liveCount;
    this.#lastSeen[row] = now;
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
      if (rule === 'sum') this.#addError(labels, column, roundingError(before, added, total));
    }
    if (rules !== undefined) this.#repeatOthers(labels, page, offset, rules);
    const isMerged = centroids !== undefined && centroids.length > 0 && !this.definition.windowed;
    if (isMerged) this.#addDigest(row, centroids);
    if (buckets !== undefined) {
      // Programs without native histograms load nothing of them.
      const { mergeBuckets, coarsened } = require('../series/merged-buckets');
      const before = this.#buckets[row]?.buckets;
      const total = before === undefined ? buckets : mergeBuckets([before, buckets]);
      this.#buckets[row] = { buckets: coarsened(total, shown ?? total), version: nextVersion++ };
    }
  }

  /** @param {number} row */
  #dropExtras(row) {
    delete this.#digests[row];
    delete this.#buckets[row];
  }

  /**
   * @param {Record<string, string>} labels
   * @param {number} column
   * @param {number} error NaN if the total is infinite
   */
  #addError(labels, column, error) {
    if (error === 0 || !Number.isFinite(error)) return;
    const row = this.#errors.start(labels);
    this.#errors.pageOf(row)[this.#errors.offsetOf(row) + column] += error;
  }

  /**
   * A merge combines both tables by the rule of each column: what is not added up is the same in both.
   *
   * @param {Record<string, string>} labels
   * @param {Float64Array} page of the totals
   * @param {number} offset
   * @param {import('../series/layouts').Rule[]} rules
   */
  #repeatOthers(labels, page, offset, rules) {
    const row = this.#errors.find(labels);
    if (row === -1) return;
    const start = this.#errors.offsetOf(row);
    rules.forEach((rule, column) => {
      if (rule !== 'sum') this.#errors.pageOf(row)[start + column] = page[offset + column];
    });
  }

  /**
   * @param {number} row
   * @param {Float64Array} centroids
   */
  #addDigest(row, centroids) {
    const present = this.#digestOf(row).centroids;
    const merged = present.length === 0 ? centroids.slice() : mergeDigests([present, centroids]);
    this.#digests[row] = new RowDigest(merged);
    // A digest that was encoded has been replaced.
    this.table.generation++;
  }

  /**
   * Calls a function with each row, and when it was seen last.
   *
   * @param {(row: number, lastSeen: number) => void} visit
   */
  eachAge(visit) {
    this.#lastSeen.forEach((lastSeen, row) => lastSeen !== DROPPED && visit(row, lastSeen));
  }

  /**
   * Records when rows were seen.
   *
   * @param {(row: number) => number} seenAt by the same clock; may be earlier than what is known
   */
  touch(seenAt) {
    this.eachAge((row, lastSeen) => (this.#lastSeen[row] = Math.max(lastSeen, seenAt(row))));
  }

  /**
   * Drops the rows that were not seen since, and releases memory of rows that are gone.
   *
   * @param {number} oldest
   * @returns {Generator<void>} yields where a slice may end
   */
  *expire(oldest) {
    let dropped = 0;
    for (let row = 0; row < this.#lastSeen.length; row++) {
      if (this.#lastSeen[row] >= oldest) continue;
      this.remove(row);
      if (++dropped % ROWS_PER_STEP === 0) yield;
    }
    yield* this.table.compactionSteps();
    yield* this.#errors.compactionSteps();
  }

  /** @param {number} row that has totals */
  remove(row) {
    const { table } = this;
    const errorRow = this.#errors.find(table.labelsOf(row));
    if (errorRow !== -1) this.#errors.removeRow(errorRow);
    table.removeRow(row);
    this.#lastSeen[row] = DROPPED;
    this.#dropExtras(row);
  }

  /** @returns {import('../series/series-table').RowMove} */
  #startMove() {
    /** @type {RowDigest[]} */
    const digests = [];
    /** @type {{buckets: Buckets, version: number}[]} */
    const buckets = [];
    /** @type {number[]} */
    const lastSeen = [];
    return {
      copy: (old, row) => {
        if (this.#digests[old] === undefined) delete digests[row];
        else digests[row] = this.#digests[old];
        if (this.#buckets[old] === undefined) delete buckets[row];
        else buckets[row] = this.#buckets[old];
        lastSeen[row] = this.#lastSeen[old];
      },
      finish: () => {
        this.#digests = digests;
        this.#buckets = buckets;
        this.#lastSeen = lastSeen;
      },
    };
  }
}

module.exports = { RetiredTotals };
