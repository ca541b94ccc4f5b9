'use strict';

// Runs in any process that records. The journal lists the metrics and label sets of a process in the order in
// which captures met them. The reader's position in it is one number, so a snapshot carries only what the
// reader does not have. The rows of a table are numbered in order of creation, so the journal needs no entry
// per series: at each capture it notes the range of rows by which a table has grown.
//
// What the reader has already is forgotten. A reader that has lost it makes the journal begin again, as a new
// epoch, with the metrics that exist then.
//
// One unit of the journal is one metric's definition or end, or one row. Positions are valid within one
// epoch.

/** Up to this many metric numbers are assigned before the journal begins again to release unused ones. */
const FEW_NUMBERS = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/**
 * How much of a process's journal a reader has; see docs/internals/snapshot-format.md.
 *
 * @typedef {{incarnation: string, epoch: number, series: number}} JournalPosition
 */

/**
 * @typedef {object} JournalMetric
 * @property {number} number
 * @property {MetricView} view as of the last capture
 * @property {readonly string[]} labelNames
 * @property {number} tableEpoch
 * @property {number} rows number of rows in the journal
 * @property {number[]} values by label: number of values in the journal
 * @property {number} note in which note() it was the last time
 */

/**
 * Rows of one metric that were added together, with the label values that they added.
 *
 * @typedef {object} Segment
 * @property {number} start position in the journal
 * @property {JournalMetric} metric
 * @property {boolean} defines whether the segment defines the metric
 * @property {boolean} drops whether the metric is dropped here, for good
 * @property {number} fromRow
 * @property {number} toRow
 * @property {number[]} fromValues by label
 * @property {number[]} toValues by label
 */

class SeriesJournal {
  /** @type {Map<object, JournalMetric>} by table: the metrics of the last capture */
  #metrics = new Map();
  /** @type {Segment[]} in order of their positions, from `#start` on */
  #segments = [];
  /** The position of the first segment that was not forgotten. */
  #start = 0;
  /** How many metrics have been numbered in this epoch. */
  #numbers = 0;
  /** How many captures, or preparations of one, have been noted. */
  #notes = 0;

  constructor() {
    /** Rises when the journal begins again from 0, with new metric numbers. */
    this.epoch = 1;
    /** Units in the journal. */
    this.length = 0;
  }

  /**
   * Adds the new metrics and rows of a capture, and drops the metrics that it does not have.
   *
   * @param {Iterable<MetricView>} views
   */
  note(views) {
    this.#notes++;
    for (const view of views) this.#noteMetric(view);
    for (const metric of this.#metrics.values()) if (metric.note !== this.#notes) this.#drop(metric);
    // The reader has a list of all numbers, which would grow while a program creates and drops metrics.
    if (this.#numbers > FEW_NUMBERS && this.#metrics.size * 2 < this.#numbers) this.#restart();
  }

  /**
   * @param {MetricView} view of a metric that was noted
   * @returns {number} the metric's number
   */
  numberOf(view) {
    return /** @type {JournalMetric} */ (this.#metrics.get(view.table)).number;
  }

  /**
   * @param {Pick<JournalPosition, 'epoch' | 'series'> | undefined} position
   * @returns {Segment[] | undefined} the segments after it; undefined unless one begins there
   */
  after(position) {
    if (position?.epoch !== this.epoch) return undefined;
    if (position.series === this.length) return [];
    const first = this.#segments.findIndex(segment => segment.start === position.series);
    return first === -1 ? undefined : this.#segments.slice(first);
  }

  /**
   * Where a reader has to continue. A new epoch begins if it needs what was forgotten.
   *
   * @param {JournalPosition | undefined} position the reader's position
   * @returns {number} that position if a segment begins there, else 0
   */
  startFor(position) {
    if (position !== undefined && this.after(position) !== undefined) return position.series;
    if (this.#start > 0) this.#restart();
    return 0;
  }

  /**
   * Forgets what the reader has. Without this, each scrape that finds a new series would add a segment for
   * good.
   *
   * @param {JournalPosition | undefined} position the reader's position
   */
  forgetBefore(position) {
    if (position === undefined || position.epoch !== this.epoch || position.series <= this.#start) return;
    this.#start = position.series;
    this.#segments = this.#segments.filter(({ start }) => start >= position.series);
  }

  #restart() {
    const views = [...this.#metrics.values()].map(({ view }) => view);
    this.#metrics.clear();
    this.#segments = [];
    this.#start = this.#numbers = this.length = 0;
    this.epoch++;
    for (const view of views) this.#noteMetric(view);
  }

  /** @param {MetricView} view */
  #noteMetric(view) {
    const { table } = view;
    let metric = this.#metrics.get(table);
    if (metric !== undefined && isOutdated(metric, view)) {
      this.#drop(metric);
      metric = undefined;
    }
    const defines = metric === undefined;
    if (metric === undefined) {
      const values = table.labelNames.map(() => 1);
      const { labelNames, epoch } = table;
      metric = { number: this.#numbers++, view, labelNames, tableEpoch: epoch, rows: 0, values, note: 0 };
      this.#metrics.set(table, metric);
    }
    metric.view = view;
    metric.note = this.#notes;
    if (defines || table.rowCount > metric.rows) this.#add(metric, defines);
  }

  /**
   * Drops a metric that is gone, has been redefined, or whose rows have been renumbered. If it still exists,
   * it is added again as a new metric, so the other metrics need not be sent again. Its old number is not
   * reused.
   *
   * @param {JournalMetric} metric
   */
  #drop(metric) {
    this.#metrics.delete(metric.view.table);
    this.#segments.push({ ...NO_ROWS, start: this.length, metric, defines: false, drops: true });
    this.length++;
  }

  /**
   * @param {JournalMetric} metric
   * @param {boolean} defines
   */
  #add(metric, defines) {
    const { table } = metric.view;
    // A reader skips the values of a segment without rows.
    const toValues =
      table.index === undefined || table.rowCount === metric.rows
        ? metric.values
        : table.index.dictionaries.map(({ values }) => values.length);
    /** @type {Segment} */
    const segment = {
      start: this.length,
      metric,
      defines,
      drops: false,
      fromRow: metric.rows,
      toRow: table.rowCount,
      fromValues: metric.values,
      toValues,
    };
    this.#segments.push(segment);
    this.length += (defines ? 1 : 0) + table.rowCount - metric.rows;
    metric.rows = table.rowCount;
    metric.values = toValues;
  }
}

const NO_ROWS = { fromRow: 0, toRow: 0, fromValues: [], toValues: [] };

/**
 * @param {JournalMetric} metric
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

module.exports = { SeriesJournal };
