'use strict';

const { exemplarsOf, isRecordForm, createExemplar } = require('./exemplar');
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
  adviseOnOrder,
  warnOfValue,
} = require('./metric');
const { OPTIONS } = require('./metric-options');
const { DEFAULT_BUCKETS, boundsOf, columnFinder } = require('./bucket-bounds');
const { closuresOf, bind } = require('./children');
const { curried } = require('./curried');
const { NO_LABELS, mergedLabels, checkLabelNames, checkLabelSet, unknownLabel } = require('./label-sets');
const { timer, timeCall } = require('./stopwatch');
const { invalidOption, invalidLabel } = require('../options/coded-error');

/** @typedef {import('./label-sets').Labels} Labels */

/**
 * @typedef {object} State
 * @property {import('../series/series-table').SeriesTable} table
 * @property {import('./exemplar').Exemplars | undefined} exemplars
 * @property {import('../series/layouts').Layout} layout with the bounds of the table, whatever the program
 *   assigns to `buckets` later
 * @property {(value: number) => number} columnOf the column that counts a value
 * @property {import('../series/native-buckets').NativeBuckets | undefined} buckets of a native histogram
 */

const HISTOGRAM_OPTIONS = new Set([
  ...[...OPTIONS, 'buckets', 'nativeHistogramBucketFactor', 'nativeHistogramZeroThreshold'],
  ...['nativeHistogramMaxBucketNumber', 'nativeHistogramMaxExemplars', 'nativeHistogramExemplarTTL'],
]);

/** Loaded on first use: programs without native histograms do not need this file. */
const natives = () => require('./native-histogram');

/**
 * A distribution in buckets: request durations, payload sizes. Buckets of several processes can be added up,
 * and quantiles computed from them (`histogram_quantile`).
 */
class Histogram extends Metric {
  /**
   * @param {any} config `name` and `help` are mandatory; `buckets` (upper bounds, in the unit that is
   *   observed), `labelNames`, `registers`, `aggregator`, `collect`, `enableExemplars`, `maxSeries`; with
   *   `nativeHistogramBucketFactor` it is a native histogram, beside a classic one unless `buckets` is empty
   * @throws {RangeError} if an option of native histograms is not valid
   * @throws {TypeError} if config is not an object, `maxSeries` is not a positive integer, or a registry's
   *   content type does not allow exemplars and `enableExemplars` is set
   * @throws {Error} if name, help or a label name is not valid or reserved, or the name is taken
   */
  constructor(config) {
    super(config, { buckets: DEFAULT_BUCKETS }, HISTOGRAM_OPTIONS);
    this.type = 'histogram';
    if (this.labelNames.includes('le')) throw invalidLabel('le is a reserved label keyword');
    const bounds = boundsOf(/** @type {any} */ (this).buckets, given =>
      warnOfValue(this, 'buckets that are not numbers are left out', given),
    );
    /** @type {readonly number[]} */
    this.buckets = bounds;
    /** @type {readonly number[]} */
    this.upperBounds = bounds;
    // One count per bound, the count above all of them, the sum.
    const table = createTable(this, bounds.length + 2);
    const isNative = /** @type {any} */ (this).nativeHistogramBucketFactor != null;
    const buckets = isNative ? natives().nativeBucketsOf(this) : undefined;
    const native = isNative ? natives().nativeExemplarsOf(this) : undefined;
    if (buckets !== undefined) table.listeners = [buckets];
    const exemplars = this.enableExemplars ? exemplarsOf(table, this.enableExemplars, native) : undefined;
    const columnOf = columnFinder(bounds);
    const layout = { kind: isNative ? 'native' : 'histogram', marks: bounds };
    const state = { table, layout, exemplars, columnOf };
    register(this, isNative ? { ...state, buckets } : state);
    if (this.labelNames.length === 0) table.locate(NO_LABELS);
  }

  /**
   * Counts a value.
   *
   * @param {Labels | number | null} [labels] or the value, for the series without labels; or, where exemplars
   *   are enabled, `{labels, value, exemplarLabels}`
   * @param {number} [value]
   * @throws {TypeError} if the value is not a finite number
   * @throws {RangeError} if the labels of an exemplar are longer than 128 characters
   * @throws {Error} if a label is not one of `labelNames`
   */
  observe(labels, value) {
    const state = stateOf(this);
    /** @type {any} */
    let exemplarLabels;
    if (state.exemplars !== undefined && value === undefined && isRecordForm(labels, this.labelNames))
      ({ labels, value, exemplarLabels } = /** @type {any} */ (labels));
    /** @type {Labels} */
    let labelSet = NO_LABELS;
    if (isObject(labels)) {
      labelSet = labels;
    } else if (labels || labels === 0) {
      // As in prom-client, anything else before a value stands for no labels: `hasUser && { user }`.
      if (isObject(value)) adviseOnOrder(this, 'observe');
      value = labels;
    }
    if (!Number.isFinite(value)) throw rejected(this, labels, value);
    const number = /** @type {number} */ (value);
    const hasExemplar = exemplarLabels != null && Object.keys(exemplarLabels).length > 0;
    // Created first, because an observation whose exemplar is refused must not be counted.
    const exemplar = hasExemplar ? createExemplar(exemplarLabels, number) : undefined;
    const { table } = state;
    const row = locate(this, table, labelSet);
    count(state, row, table.pageOf(row), table.offsetOf(row), number, exemplar);
  }

  /**
   * Starts a timer.
   *
   * @param {Labels} [labels]
   * @param {Labels} [exemplarLabels] where exemplars are enabled
   * @returns {(labels?: Labels, exemplarLabels?: Labels) => number} observes the seconds since the start, and
   *   returns them; labels given here are added to those of the start. `using` ends it too
   */
  startTimer(labels, exemplarLabels) {
    return timer(labels, (allLabels, value, endExemplarLabels) => {
      if (stateOf(this).exemplars === undefined) {
        this.observe(allLabels, value);
      } else {
        const allExemplarLabels = mergedLabels(exemplarLabels, endExemplarLabels);
        this.observe({ labels: allLabels, value, exemplarLabels: allExemplarLabels });
      }
    });
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
   * Returns a child for one label set. Recording with a reused child needs no lookup.
   *
   * @param {...any} labels one object of labels, or all values in the order of `labelNames`
   * @returns {{observe: (value: number) => void, startTimer: () =>
   *   (labels?: Labels, exemplarLabels?: Labels) => number}}
   * @throws {Error} if a label is not one of `labelNames`, or the number of values does not fit
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

  /**
   * Sets a series to zero observations; creates it if it does not exist.
   *
   * @param {Labels} [labels] of a series; if it would exceed `maxSeries`, the overflow series is not reset.
   *   There is none if a label is not one of `labelNames`
   */
  zero(labels) {
    const table = tableOf(this);
    const labelSet = labels ?? NO_LABELS;
    if (unknownLabel(this, labelSet) !== undefined) {
      warnOfValue(this, 'zero() does nothing for labels that are not in labelNames', labels);
      return;
    }
    const row = table.find(labelSet);
    if (row === -1) {
      // A new series has no observations, and the overflow series is shared, so it must not be reset.
      locate(this, table, labelSet);
      return;
    }
    table.touch(row);
    table.resetRow(row);
    const { exemplars, buckets } = stateOf(this);
    exemplars?.drop(row);
    buckets?.clear(row);
  }

  /** Drops all series. The series of a histogram without labels comes back with the next observation. */
  reset() {
    tableOf(this).clear();
  }

  /**
   * Estimates a quantile of the observations of a native histogram's series in this process, from its
   * buckets, like Prometheus 3. Runs no `collect` hook.
   *
   * @param {number} quantile 0 to 1
   * @param {Labels} [labels] all labels of the series
   * @returns {number} NaN if nothing was observed, or the quantile is NaN; -Infinity if it is below 0,
   *   Infinity if it is above 1
   * @throws {TypeError} if the histogram is not a native one, or the labels are not an object
   * @throws {Error} if a label is not one of `labelNames`
   */
  quantile(quantile, labels) {
    const set = labels ?? NO_LABELS;
    checkLabelSet('quantile', set);
    checkLabelNames(this, set);
    const { buckets, table } = /** @type {State} */ (stateOf(this));
    if (buckets === undefined)
      throw invalidOption(`quantile() of ${this.name} needs its option nativeHistogramBucketFactor`);
    const row = table.find(set);
    return row === -1 ? NaN : natives().quantileOf(buckets.read(row), quantile);
  }

  /**
   * @param {number} row
   * @param {Labels} labels
   */
  [SERIES](row, labels) {
    const { table, exemplars, layout } = /** @type {State} */ (stateOf(this));
    const bounds = layout.marks;
    const numbers = table.pageOf(row).subarray(table.offsetOf(row), table.offsetOf(row) + table.width);
    const counts = numbers.subarray(0, bounds.length + 1);
    const series = {
      labels,
      bucketValues: Object.fromEntries(bounds.map((bound, column) => [bound, numbers[column]])),
      sum: numbers[bounds.length + 1],
      count: counts.reduce((sum, number) => sum + number, 0),
    };
    if (exemplars === undefined) return series;
    const places = bounds.map((bound, column) => [bound, exemplars.at(row, column) ?? null]);
    const aboveAll = exemplars.at(row, bounds.length);
    if (aboveAll !== undefined) places.push([-1, aboveAll]);
    return { ...series, bucketExemplars: Object.fromEntries(places) };
  }

  /** @returns {import('../exposition/live-family').MetricView} */
  [READ]() {
    const view = super[READ]();
    view.buckets = stateOf(this).buckets;
    return view;
  }

  /** Buckets are cumulative. */
  [VALUES]() {
    const { table, buckets, exemplars, layout } = /** @type {State} */ (stateOf(this));
    const values = jsonValues(this[READ](), ({ value, metricName, labels, row, column }) => {
      if (column === undefined) return { value, metricName, exemplar: undefined, labels };
      // As in prom-client, an empty bucket has null, or undefined above all bounds with exemplars enabled.
      const none = exemplars !== undefined && column === layout.marks.length ? undefined : null;
      return { value, metricName, exemplar: exemplars?.at(row, column) ?? none, labels };
    });
    if (buckets === undefined) return { values };
    const nativeHistograms = Array.from(table.liveRows(), row =>
      natives().nativeJson(buckets.read(row), {
        labels: table.labelsOf(row),
        sum: table.pageOf(row)[table.offsetOf(row) + table.width - 1],
        createdTimestamp: table.startAt(row),
        exemplars: exemplars?.nativeAt(row) ?? [],
      }),
    );
    return { values, nativeHistograms };
  }
}

/**
 * @param {Histogram} histogram
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @returns {{observe: (value: number) => void, startTimer: () =>
 *   (labels?: Labels, exemplarLabels?: Labels) => number}}
 */
function childOf(histogram, handle) {
  return {
    observe: value => observeChild(histogram, handle, value),
    startTimer: () => histogram.startTimer(handle.labels),
  };
}

/**
 * @param {Histogram} histogram
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @param {number} value
 */
function observeChild(histogram, handle, value) {
  if (!Number.isFinite(value)) throw notANumber(value);
  if (handle.generation !== handle.table.generation) bind(histogram, handle);
  count(stateOf(histogram), handle.row, handle.page, handle.offset, value);
}

/**
 * The error for a value that is not a number; a wrong label comes before a wrong value.
 *
 * @param {Histogram} histogram
 * @param {unknown} labels
 * @param {unknown} value
 * @returns {Error}
 * @throws {Error} if a label is not one of `labelNames`
 */
function rejected(histogram, labels, value) {
  if (isObject(labels)) checkLabelNames(histogram, labels);
  return notANumber(value, value === undefined && !isObject(labels) ? labels : value);
}

/**
 * @param {State} state
 * @param {number} row
 * @param {Float64Array} page
 * @param {number} offset of the row
 * @param {number} value
 * @param {import('./exemplar').Exemplar} [exemplar]
 */
function count({ columnOf, table, buckets, exemplars }, row, page, offset, value, exemplar) {
  const column = columnOf(value);
  page[offset + column]++;
  page[offset + table.width - 1] += value;
  if (buckets !== undefined) buckets.add(row, value);
  if (exemplar !== undefined) exemplars?.record(row, column, exemplar);
  else if (exemplars !== undefined) exemplars.putTrace(row, column, value);
}

module.exports = { Histogram };
