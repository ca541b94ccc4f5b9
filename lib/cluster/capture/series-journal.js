'use strict';

// What a worker has told of its metrics and label sets so far, as one rising number, so that a snapshot carries only
// what the primary does not know. Rows of a table are numbered in order of creation, so the journal needs no entry per
// series: it notes, at each capture, from which row to which a table has grown.
//
// One unit of the journal is one metric's definition or one row. Positions in it mean something within one epoch only.

/** @typedef {import('../../exposition/live-family').MetricView} MetricView */

/**
 * @typedef {object} JournalMetric
 * @property {number} number
 * @property {MetricView} view as it was captured last
 * @property {readonly string[]} labelNames
 * @property {number} tableEpoch
 * @property {number} rows how many rows the journal has
 * @property {number[]} values by label: how many values the journal has
 * @property {number} seenAt the capture that met it last
 */

/**
 * Rows of one metric that entered together, with the label values that came with them.
 *
 * @typedef {object} Segment
 * @property {number} start position in the journal
 * @property {JournalMetric} metric
 * @property {boolean} defines whether the metric itself enters here
 * @property {boolean} drops whether the metric leaves here for good
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
  /** How many metrics got a number in this epoch. */
  #numbers = 0;
  /** Positions before this one mean nothing any more: what led there was merged. */
  #settledTo = 0;

  constructor() {
    /** Rises whenever row numbers have changed their meaning. */
    this.epoch = 1;
    /** How long the journal is. */
    this.length = 0;
  }

  /**
   * Notes how far each metric has come that takes part in a capture.
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
   * Whether most of what the journal holds belongs to metrics that are gone: a program that makes and drops metrics
   * must not make it grow.
   */
  get #isStale() {
    return this.#numbers > 64 && this.#seen * 2 < this.#numbers;
  }

  #restart() {
    this.#metrics.clear();
    this.#numbers = 0;
    this.#segments = [];
    this.#settledTo = 0;
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
    if (defines || table.rowCount > metric.rows) this.#enter(metric, defines);
  }

  /**
   * What has to be told to somebody who knows the journal up to a position.
   *
   * @param {{epoch: number, series: number} | undefined} known
   * @returns {{start: number, segments: Segment[]}} from that position where the journal can be cut there, else from 0
   */
  since(known) {
    if (known === undefined || known.epoch !== this.epoch) return this.#all();
    if (known.series === this.length) return { start: this.length, segments: [] };
    if (known.series < this.#settledTo) return this.#all();
    const first = this.#segments.findIndex(segment => segment.start === known.series);
    if (first === -1) return this.#all();
    return { start: known.series, segments: this.#segments.slice(first) };
  }

  #all() {
    return { start: 0, segments: [...this.#segments] };
  }

  /**
   * Merges what lies before a position: nobody will ask for a part of it any more. Keeps the number of segments from
   * growing with every scrape that meets a new series.
   *
   * @param {{epoch: number, series: number} | undefined} known
   */
  settle(known) {
    if (known === undefined || known.epoch !== this.epoch || this.#segments.length <= this.#metrics.size * 2)
      return;
    const later = this.#segments.filter(segment => segment.start >= known.series);
    const settled = this.#segments.length - later.length;
    if (settled <= this.#metrics.size) return;
    /** @type {Map<JournalMetric, Segment>} */
    const merged = new Map();
    for (const segment of this.#segments.slice(0, settled)) {
      const whole = merged.get(segment.metric);
      if (whole === undefined) {
        merged.set(segment.metric, { ...segment });
      } else {
        whole.toRow = Math.max(whole.toRow, segment.toRow);
        if (!segment.drops) whole.toValues = segment.toValues;
        whole.drops ||= segment.drops;
      }
    }
    // What they start at means nothing any more: whoever does not know them all is told from the beginning.
    const first = [...merged.values()].map(segment => ({ ...segment, start: 0 }));
    this.#segments = [...first, ...later];
    this.#settledTo = known.series;
  }

  /**
   * A metric whose rows have got new numbers, or which is another one now, goes on as a new metric: the others need not
   * be told again. Its old number stays taken, with no rows.
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
  #enter(metric, defines) {
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
