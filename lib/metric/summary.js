'use strict';

const { SeriesHandle } = require('../series/series-handle');
const { TimeWindowQuantiles } = require('./time-window-quantiles');
const { VIEW } = require('./view');
const { hashMapOf } = require('./hash-map');
const {
  Metric,
  NO_LABELS,
  createTable,
  tableOf,
  labelSetOf,
  checkLabelNames,
  locate,
  bind,
  viewWith,
  isObject,
  notANumber,
  timer,
  runCollect,
} = require('./metric');

/** @typedef {import('./metric').Labels} Labels */

const DEFAULT_PERCENTILES = [0.01, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999];

const SUM = 0;
const COUNT = 1;

/**
 * Quantiles of what this process observed, with their sum and count. Sum and count are lifetime values; quantiles can
 * be limited to a sliding window.
 */
class Summary extends Metric {
  /** @type {TimeWindowQuantiles[]} by row */
  #quantiles = [];
  /** @type {number[]} by row: observations since the digest was compressed */
  #sinceCompress = [];

  /**
   * @param {any} config `name` and `help` are mandatory; `percentiles` (0 to 1), `maxAgeSeconds` and `ageBuckets` (a
   *   window needs both), `pruneAgedBuckets` (drop series whose window is empty), `compressCount` (observations between
   *   two compressions of a digest, default 1000), `labelNames`, `registers`, `aggregator`, `collect`, `maxSeries`
   * @throws {TypeError} where config is no object, or `maxSeries` is no positive integer
   * @throws {Error} where name, help or a label name is not valid or reserved, or the name is taken
   */
  constructor(config) {
    super(config, { percentiles: DEFAULT_PERCENTILES, compressCount: 1000 });
    this.type = 'summary';
    if (this.labelNames.includes('quantile')) throw new Error('quantile is a reserved label keyword');
    const table = createTable(this, 2);
    table.onRowStart = row => this.#startRow(row);
    table.onRowsMoved = rows => this.#moveRows(rows);
    if (this.labelNames.length === 0) table.locate(NO_LABELS);
    this.register(table);
  }

  /**
   * @param {Labels | number | null} [labels] or the value, for the series without labels
   * @param {number} [value]
   * @throws {TypeError} where the value is not a finite number
   * @throws {Error} where a label is not one of `labelNames`
   */
  observe(labels, value) {
    /** @type {Labels} */
    let labelSet = NO_LABELS;
    if (isObject(labels)) labelSet = labels;
    else if (labels != null) value = labels;
    if (!Number.isFinite(value)) {
      checkLabelNames(this, labelSet);
      throw notANumber(value === undefined ? labelSet : value);
    }
    const table = tableOf(this);
    const row = locate(this, table, labelSet);
    this.#count(row, table.pageOf(row), table.offsetOf(row), /** @type {number} */ (value));
  }

  /**
   * Starts a timer.
   *
   * @param {Labels} [labels]
   * @returns {(labels?: Labels) => number} observes the seconds since the start, and returns them; labels given here
   *   are added to those of the start
   */
  startTimer(labels) {
    return timer(labels, (allLabels, seconds) => this.observe(allLabels, seconds));
  }

  /**
   * A child for one label set, for hot paths: it looks nothing up.
   *
   * @param {...any} labels one object of labels, or all values in the order of `labelNames`
   * @returns {{observe: (value: number) => void, startTimer: () => (labels?: Labels) => number}}
   * @throws {Error} where a label is not one of `labelNames`, or the number of values does not fit
   */
  labels(...labels) {
    const labelSet = labelSetOf(this, labels);
    checkLabelNames(this, labelSet);
    const table = tableOf(this);
    const handle = new SeriesHandle(table, labelSet);
    return {
      observe: value => {
        if (!Number.isFinite(value)) throw notANumber(value === undefined ? labelSet : value);
        if (handle.generation !== table.generation) bind(this, handle);
        this.#count(handle.row, handle.page, handle.offset, value);
      },
      startTimer: () => this.startTimer(labelSet),
    };
  }

  /** Sets all series to no observations; none is dropped. */
  reset() {
    const table = tableOf(this);
    for (const row of table.liveRows()) {
      const offset = table.offsetOf(row);
      table.pageOf(row).fill(0, offset, offset + table.width);
      this.#quantiles[row].reset();
      this.#sinceCompress[row] = 0;
    }
  }

  /**
   * The metric as JSON, after its `collect` hook has run.
   *
   * @returns {Promise<object>}
   */
  async get() {
    await runCollect(this);
    const { name, help, type, aggregator } = this;
    return { name, help, type, values: this.#values(), aggregator };
  }

  /**
   * The series by prom-client's keys, made when read.
   *
   * @returns {Record<string, object>}
   */
  get hashMap() {
    const table = tableOf(this);
    return hashMapOf(table, (row, labels) => {
      const page = table.pageOf(row);
      const offset = table.offsetOf(row);
      return { labels, td: this.#quantiles[row], count: page[offset + COUNT], sum: page[offset + SUM] };
    });
  }

  /** @returns {import('../exposition/live-family').MetricView | undefined} */
  [VIEW]() {
    if (this.get !== Summary.prototype.get) return undefined;
    return {
      ...viewWith(this, { kind: 'summary', quantiles: this.#percentiles }),
      beforeRead: () => this.#prune(),
      quantileValues: row => this.#quantileValues(row),
      digestOf: row => this.#quantiles[row],
      windowed: Boolean(/** @type {any} */ (this).maxAgeSeconds && /** @type {any} */ (this).ageBuckets),
    };
  }

  /** @returns {number[]} */
  get #percentiles() {
    return /** @type {any} */ (this).percentiles;
  }

  /**
   * @param {number} row
   * @param {Float64Array} page
   * @param {number} offset
   * @param {number} value
   */
  #count(row, page, offset, value) {
    page[offset + SUM] += value;
    page[offset + COUNT]++;
    const quantiles = this.#quantiles[row];
    quantiles.push(value);
    if (++this.#sinceCompress[row] >= /** @type {any} */ (this).compressCount) {
      this.#sinceCompress[row] = 0;
      quantiles.compress();
    }
  }

  /** @param {number} row */
  #startRow(row) {
    const { maxAgeSeconds, ageBuckets } = /** @type {any} */ (this);
    this.#quantiles[row] = new TimeWindowQuantiles(maxAgeSeconds, ageBuckets);
    this.#sinceCompress[row] = 0;
  }

  /** @param {number[]} rows the old number of each row that is kept, in their new order */
  #moveRows(rows) {
    this.#quantiles = rows.map(row => this.#quantiles[row]);
    this.#sinceCompress = rows.map(row => this.#sinceCompress[row]);
  }

  /** @param {number} row */
  #quantileValues(row) {
    const quantiles = this.#quantiles[row];
    quantiles.compress();
    return this.#percentiles.map(percentile => quantiles.percentile(percentile));
  }

  /** Drops the series whose window is empty, where that is asked for. */
  #prune() {
    if (!(/** @type {any} */ (this).pruneAgedBuckets)) return;
    const table = tableOf(this);
    for (const row of [...table.liveRows()]) if (this.#quantiles[row].size() === 0) table.removeRow(row);
  }

  #values() {
    this.#prune();
    const table = tableOf(this);
    const values = [];
    for (const row of table.liveRows()) {
      const quantileValues = this.#quantileValues(row);
      this.#percentiles.forEach((quantile, i) => {
        values.push({ labels: { quantile, ...table.labelsOf(row) }, value: quantileValues[i] });
      });
      const page = table.pageOf(row);
      const offset = table.offsetOf(row);
      values.push({ metricName: `${this.name}_sum`, labels: table.labelsOf(row), value: page[offset + SUM] });
      values.push({
        metricName: `${this.name}_count`,
        labels: table.labelsOf(row),
        value: page[offset + COUNT],
      });
    }
    return values;
  }
}

module.exports = { Summary };
