'use strict';

// Runs in any process that records. The journal lists the metrics and label sets of a process in the order in
// which captures met them. The reader's position in it is one number, so a snapshot carries only what the
// reader does not have. The rows of a table are numbered in order of creation, so the journal needs no entry
// per series: at each capture it notes the range of rows by which a table has grown.
//
// One unit of the journal is one metric's definition or one row. Positions are valid within one epoch.

/** @typedef {import('../../exposition/live-family').MetricView} MetricView */

/**
 * @typedef {object} JournalMetric
 * @property {number} number
 * @property {MetricView} view as of the last capture
 * @property {readonly string[]} labelNames
 * @property {number} tableEpoch
 * @property {number} rows number of rows in the journal
 * @property {number[]} values by label: number of values in the journal
 * @property {number} seenAt number of the last capture that included it
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
  /** @type {Map<object, JournalMetric>} by table */
  #metrics = new Map();
  /** @type {Segment[]} */
  #segments = [];
  #capture = 0;
  #seen = 0;
  /** How many metrics have been numbered in this epoch. */
  #numbers = 0;
  /** The segments before this position were merged: the journal cannot be cut before it. */
  #mergedTo = 0;

  constructor() {
    /** Rises when the journal begins again from 0, with new metric numbers. */
    this.epoch = 1;
    /** Units in the journal. */
    this.length = 0;
  }

  /**
   * Adds the new metrics and rows of a capture.
   *
   * @param {Iterable<MetricView>} views
   */
  note(views) {
    const list = [...views];
    if (this.#isStale) this.#restart();
    this.#capture++;
    this.#seen = 0;
    for (const view of list) this.#noteMetric(view);
  }

  /**
   * @param {MetricView} view of a metric that was noted
   * @returns {number} the metric's number
   */
  numberOf(view) {
    return /** @type {JournalMetric} */ (this.#metrics.get(view.table)).number;
  }

  /**
   * Whether most metrics in the journal were not in the last capture. The journal of a program that creates
   * and drops metrics would otherwise grow without bound.
   */
  get #isStale() {
    return this.#numbers > 64 && this.#seen * 2 < this.#numbers;
  }

  #restart() {
    this.#metrics.clear();
    this.#numbers = 0;
    this.#segments = [];
    this.#mergedTo = 0;
    this.length = 0;
    this.epoch++;
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
      metric = { number: this.#numbers++, view, labelNames, tableEpoch: epoch, rows: 0, values, seenAt: 0 };
      this.#metrics.set(table, metric);
    }
    metric.view = view;
    if (metric.seenAt !== this.#capture) {
      metric.seenAt = this.#capture;
      this.#seen++;
    }
    if (defines || table.rowCount > metric.rows) this.#add(metric, defines);
  }

  /**
   * The segments that a reader needs.
   *
   * @param {{epoch: number, series: number} | undefined} known the reader's position
   * @returns {{start: number, segments: Segment[]}} from that position if a segment begins there, else from 0
   */
  since(known) {
    if (known === undefined || known.epoch !== this.epoch) return this.#all();
    if (known.series === this.length) return { start: this.length, segments: [] };
    if (known.series < this.#mergedTo) return this.#all();
    const first = this.#segments.findIndex(segment => segment.start === known.series);
    if (first === -1) return this.#all();
    return { start: known.series, segments: this.#segments.slice(first) };
  }

  #all() {
    return { start: 0, segments: [...this.#segments] };
  }

  /**
   * Merges the segments before the reader's position into one per metric: the reader will not request a part
   * of them. Without this, each scrape that finds a new series would add a segment for good.
   *
   * @param {{epoch: number, series: number} | undefined} known the reader's position
   */
  mergeBefore(known) {
    if (known === undefined || known.epoch !== this.epoch || this.#segments.length <= this.#metrics.size * 2)
      return;
    const later = this.#segments.filter(segment => segment.start >= known.series);
    const earlier = this.#segments.length - later.length;
    if (earlier <= this.#metrics.size) return;
    /** @type {Map<JournalMetric, Segment>} */
    const merged = new Map();
    for (const segment of this.#segments.slice(0, earlier)) {
      const whole = merged.get(segment.metric);
      if (whole === undefined) {
        merged.set(segment.metric, { ...segment });
      } else {
        whole.toRow = Math.max(whole.toRow, segment.toRow);
        if (!segment.drops) whole.toValues = segment.toValues;
        whole.drops ||= segment.drops;
      }
    }
    // Their start positions are no longer valid: a reader that does not have all of them gets the journal
    // from 0.
    const first = [...merged.values()].map(segment => ({ ...segment, start: 0 }));
    this.#segments = [...first, ...later];
    this.#mergedTo = known.series;
  }

  /**
   * Drops a metric that has been redefined, or whose rows have been renumbered. It is added again as a new
   * metric, so the other metrics need not be sent again. Its old number is not reused.
   *
   * @param {JournalMetric} metric
   */
  #drop(metric) {
    this.#segments = this.#segments.filter(segment => segment.metric !== metric || segment.defines);
    this.#segments = this.#segments.map(segment =>
      segment.metric === metric
        ? { ...segment, toRow: segment.fromRow, toValues: segment.fromValues }
        : segment,
    );
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
    this.length += lengthOf(segment);
    metric.rows = table.rowCount;
    metric.values = toValues;
  }
}

const NO_ROWS = { fromRow: 0, toRow: 0, fromValues: [], toValues: [] };

/** @param {Segment} segment */
function lengthOf({ defines, drops, fromRow, toRow }) {
  return (defines || drops ? 1 : 0) + toRow - fromRow;
}

/**
 * @param {JournalMetric} metric
 * @param {MetricView} view
 */
function isOutdated(metric, view) {
  return metric.tableEpoch !== view.table.epoch || isRedefined(metric.view, view);
}

/**
 * @param {MetricView} before
 * @param {MetricView} now
 */
function isRedefined(before, now) {
  return (
    before.name !== now.name ||
    before.help !== now.help ||
    before.type !== now.type ||
    before.aggregator !== now.aggregator
  );
}

module.exports = { SeriesJournal };
