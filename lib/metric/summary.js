'use strict';

const { TimeWindowQuantiles, quantilesOf } = require('./time-window-quantiles');
const {
  Metric,
  register,
  createTable,
  stateOf,
  tableOf,
  locate,
  jsonValues,
  VALUES,
  SERIES,
  READ,
  isObject,
  notANumber,
  warnOfValue,
} = require('./metric');
const { OPTIONS, isNumeric } = require('./metric-options');
const { closuresOf, bind } = require('./children');
const { curried } = require('./curried');
const { NO_LABELS, checkLabelNames } = require('./label-sets');
const { adviseOnce } = require('../options/warnings');
const { timer, timeCall } = require('./stopwatch');
const { codedError, invalidLabel } = require('../options/coded-error');

/** @typedef {import('./label-sets').Labels} Labels */
/** @typedef {import('../series/series-table').RowListener} RowListener */

const DEFAULT_PERCENTILES = [0.01, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999];

const SUMMARY_OPTIONS = new Set([
  ...OPTIONS,
  ...['percentiles', 'maxAgeSeconds', 'ageBuckets', 'pruneAgedBuckets', 'compressCount'],
]);

// Maximum for each series: more than the number of seconds in a day.
const MAX_AGE_BUCKETS = 100_000;

const SUM = 0;
const COUNT = 1;

/**
 * The state of a summary.
 *
 * @implements {RowListener}
 */
class State {
  /**
   * @param {Summary} summary
   * @param {import('../series/series-table').SeriesTable} table
   */
  constructor(summary, table) {
    this.summary = summary;
    this.table = table;
    /** @type {TimeWindowQuantiles[]} by row */
    // The first element of an empty array would allocate 17.
    this.quantiles = summary.labelNames.length === 0 ? new Array(1) : [];
    table.listeners = [this];
  }

  /** @param {number} row */
  rowStarted(row) {
    const { maxAgeSeconds, ageBuckets, compressCount } = /** @type {any} */ (this.summary);
    this.quantiles[row] = new TimeWindowQuantiles(maxAgeSeconds, ageBuckets, compressCount);
  }

  /** @returns {import('../series/series-table').RowMove} */
  startMove() {
    /** @type {TimeWindowQuantiles[]} */
    const quantiles = [];
    return {
      copy: (old, row) => {
        quantiles[row] = this.quantiles[old];
      },
      finish: () => {
        this.quantiles = quantiles;
      },
    };
  }
}

/**
 * Quantiles, sum and count of the values observed in this process. Sum and count cover its lifetime;
 * quantiles can be limited to a sliding window. An observation costs one write to a buffer; every 512 of them
 * are sorted and merged, which takes 20 to 40 µs.
 */
class Summary extends Metric {
  /**
   * @param {any} config `name` and `help` are mandatory; `percentiles` (0 to 1), `maxAgeSeconds` and
   *   `ageBuckets` (a window needs both), `pruneAgedBuckets` (drop series whose window is empty),
   *   `compressCount` (observations to buffer before they are merged, at most 512: fewer take less memory and
   *   more time), `labelNames`, `registers`, `aggregator`, `collect`, `maxSeries`
   * @throws {TypeError} if config is not an object, or `maxSeries` not a positive integer
   * @throws {RangeError} if `ageBuckets` is a number that no array can have as its length
   * @throws {Error} if name, help or a label name is invalid or reserved, or the name is taken
   */
  constructor(config) {
    super(config, { percentiles: DEFAULT_PERCENTILES, compressCount: 1000 }, SUMMARY_OPTIONS);
    this.type = 'summary';
    if (this.labelNames.includes('quantile')) throw invalidLabel('quantile is a reserved label keyword');
    setPercentiles(/** @type {any} */ (this));
    setWindow(/** @type {any} */ (this));
    const table = createTable(this, 2);
    const state = new State(this, table);
    if (this.labelNames.length === 0) table.locate(NO_LABELS);
    register(this, state);
  }

  /**
   * @param {Labels | number | null} [labels] or the value, of the series without labels
   * @param {number} [value]
   * @throws {TypeError} if the value is not a finite number
   * @throws {Error} if a label is not one of `labelNames`
   */
  observe(labels, value) {
    /** @type {Labels} */
    let labelSet = NO_LABELS;
    let number = value;
    if (isObject(labels)) labelSet = labels;
    else if (value === undefined && labels != null) number = labels;
    if (!Number.isFinite(number)) throw rejected(this, labels, value);
    const state = stateOf(this);
    const { table } = state;
    const row = locate(this, table, labelSet);
    count(state, row, table.pageOf(row), table.offsetOf(row), /** @type {number} */ (number));
  }

  /**
   * Starts a timer.
   *
   * @param {Labels} [labels]
   * @returns {(labels?: Labels) => number} observes the seconds since the start and returns them; its labels
   *   are added to those of the start. `using` ends it too
   */
  startTimer(labels) {
    return timer(labels, (allLabels, seconds) => this.observe(allLabels, seconds));
  }

  /**
   * Observes the seconds that a function takes, until its promise is settled if it returns one, even if it
   * fails.
   *
   * @param {Labels | (() => any) | null} labels or the function, for the series without labels
   * @param {() => any} [call] the function
   * @returns {any} what the function returns
   * @throws {TypeError} if there is no function
   * @throws {Error} if a label is not one of `labelNames`; the function is not called then
   */
  time(labels, call) {
    return timeCall(this, labels, call);
  }

  /**
   * A child for one label set, for hot paths: it skips the lookup of the label set.
   *
   * @param {...any} labels one object of labels, or all values in the order of `labelNames`
   * @returns {{observe: (value: number) => void, startTimer: () => (labels?: Labels) => number}}
   * @throws {Error} if a label is not one of `labelNames`, or the number of values differs
   */
  labels(...labels) {
    const { observe, startTimer } = closuresOf(this, tableOf(this), labels, childOf);
    return { observe, startTimer };
  }

  /**
   * Binds some labels, and returns an object whose methods take the others: for code that knows some labels
   * early, such as the method and route of a request.
   *
   * @param {Labels} labels
   * @returns {any} an object with `observe()`, timers, `labels()`, `remove()`, `value()` and `curry()`
   * @throws {TypeError} if it is not an object of labels
   * @throws {Error} if a label is not one of `labelNames`
   */
  curry(labels) {
    return curried(this, labels, childOf);
  }

  /** Removes the observations of all series. The series remain. */
  reset() {
    const { table, quantiles } = /** @type {State} */ (stateOf(this));
    for (const row of table.liveRows()) {
      table.resetRow(row);
      quantiles[row].reset();
    }
  }

  /**
   * @param {number} row
   * @param {Labels} labels
   */
  [SERIES](row, labels) {
    const { table, quantiles } = /** @type {State} */ (stateOf(this));
    const page = table.pageOf(row);
    const offset = table.offsetOf(row);
    return { labels, td: quantiles[row], count: page[offset + COUNT], sum: page[offset + SUM] };
  }

  [VALUES]() {
    prune(this);
    const values = jsonValues(this[READ](), ({ value, labels, metricName }) =>
      metricName === undefined ? { labels, value } : { metricName, labels, value },
    );
    return { values };
  }

  /** @returns {import('../exposition/live-family').MetricView} */
  [READ]() {
    const { percentiles, maxAgeSeconds, ageBuckets, pruneAgedBuckets } = /** @type {any} */ (this);
    const state = stateOf(this);
    // Assigned, because spreading takes V8 longer. The closures are not stored: they would take 250 bytes for
    // each summary.
    return Object.assign(super[READ](), {
      layout: { kind: 'summary', marks: percentiles },
      beforeRead: pruneAgedBuckets ? () => prune(this) : undefined,
      captureQuantiles: () => captureQuantiles(this),
      digestOf: (/** @type {number} */ row) => state.quantiles[row],
      windowed: Boolean(maxAgeSeconds && ageBuckets),
    });
  }
}

/**
 * Leaves out what is not a number. As in prom-client, 99 stands for the maximum.
 *
 * @param {Summary & {percentiles: unknown}} summary
 */
function setPercentiles(summary) {
  const { percentiles } = summary;
  const numeric = Array.isArray(percentiles) ? percentiles.filter(isNumeric) : [];
  if (Array.isArray(percentiles) && numeric.length === percentiles.length) {
    if (numeric.every(percentile => percentile >= 0 && percentile <= 1)) return;
    warnOfValue(summary, 'percentiles should be between 0 and 1 (0.99 and not 99)', percentiles);
    return;
  }
  warnOfValue(summary, 'percentiles that are not numbers are left out', percentiles);
  summary.percentiles = numeric;
}

/**
 * Bounds the number of slices of time. Without a positive age there is no window.
 *
 * @param {Summary & {maxAgeSeconds?: any, ageBuckets?: any}} summary
 * @throws {RangeError} if `ageBuckets` is a number that no array can have as its length
 */
function setWindow(summary) {
  const { name, maxAgeSeconds, ageBuckets } = summary;
  if (Boolean(maxAgeSeconds) !== Boolean(ageBuckets))
    adviseOnce('window', `Metric ${name}: a sliding window needs both maxAgeSeconds and ageBuckets`);
  if (!maxAgeSeconds || !ageBuckets) return;
  if (typeof ageBuckets === 'number' && ageBuckets !== ageBuckets >>> 0) {
    const more = `: ageBuckets must be a whole number up to ${MAX_AGE_BUCKETS}: ${ageBuckets}`;
    throw codedError('INVALID_OPTION', RangeError, 'Invalid array length', more);
  }
  const count = isNumeric(ageBuckets) ? Math.floor(Number(ageBuckets)) : 0;
  const isWindow = isNumeric(maxAgeSeconds) && maxAgeSeconds > 0;
  if (isWindow && count >= 1 && count <= MAX_AGE_BUCKETS) return;
  const problem = `a sliding window needs seconds above 0 and 1 to ${MAX_AGE_BUCKETS} ageBuckets`;
  warnOfValue(summary, problem, { maxAgeSeconds, ageBuckets });
  if (!isWindow) summary.maxAgeSeconds = undefined;
  summary.ageBuckets = Math.min(Math.max(count, 1), MAX_AGE_BUCKETS);
}

/**
 * The error for a value that is not a number, as in prom-client: a wrong label comes before a wrong value,
 * and the characters of a text are labels.
 *
 * @param {Summary} summary
 * @param {any} labels
 * @param {unknown} value
 * @returns {Error}
 * @throws {Error} if a label is not one of `labelNames`
 */
function rejected(summary, labels, value) {
  if (typeof labels === 'string' || isObject(labels)) checkLabelNames(summary, /** @type {any} */ (labels));
  return value === undefined ? notANumber(labels || {}, labels) : notANumber(value);
}

/**
 * @param {Summary} summary
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @returns {{observe: (value: number) => void, startTimer: () => (labels?: Labels) => number}}
 */
function childOf(summary, handle) {
  return {
    observe: value => observeChild(summary, handle, value),
    startTimer: () => summary.startTimer(handle.labels),
  };
}

/**
 * @param {Summary} summary
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @param {number} value
 */
function observeChild(summary, handle, value) {
  if (!Number.isFinite(value)) throw notANumber(value === undefined ? handle.labels : value);
  if (handle.generation !== handle.table.generation) bind(summary, handle);
  count(stateOf(summary), handle.row, handle.page, handle.offset, value);
}

/**
 * @param {State} state
 * @param {number} row
 * @param {Float64Array} page
 * @param {number} offset
 * @param {number} value
 */
function count({ quantiles }, row, page, offset, value) {
  page[offset + SUM] += value;
  page[offset + COUNT]++;
  quantiles[row].push(value);
}

/**
 * Captures the observations of each series. A later reset or new slice of the window does not change the
 * capture, but values that are observed before the row is read are included.
 *
 * @param {any} summary
 * @returns {(row: number) => number[]}
 */
function captureQuantiles(summary) {
  const { percentiles } = summary;
  const { table, quantiles } = /** @type {State} */ (stateOf(summary));
  /** @type {import('./observations').Observations[][]} by row */
  const captured = [];
  for (const row of table.liveRows()) captured[row] = quantiles[row].slices();
  return row => quantilesOf(captured[row], percentiles);
}

/**
 * With `pruneAgedBuckets`, drops the series whose window is empty.
 *
 * @param {any} summary
 */
function prune(summary) {
  if (!summary.pruneAgedBuckets) return;
  const { table, quantiles } = /** @type {State} */ (stateOf(summary));
  for (const row of [...table.liveRows()])
    if (quantiles[row].slices().every(slice => slice.isEmpty)) table.removeRow(row);
}

module.exports = { Summary };
