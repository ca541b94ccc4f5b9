'use strict';

// Runs on the primary's loop. The aggregators by name: each combines the values of several processes into
// one. These functions work on prom-client's JSON, for AggregatorRegistry.aggregate() and for applications
// that call them. The cluster store applies the same rules to its columns (family-totals.js).

const { aggregated, kindOfType } = require('../../series/layouts');
const { meanQuantile } = require('../../metric/centroids');

/** @typedef {import('../../series/native-json').NativeJson} NativeJson */
/** @typedef {{labels: Record<string, unknown>, metricName?: string}} Grouped */
/** @typedef {Grouped & {value: number}} Sample */
/**
 * @typedef {{help: string, name: string, type: string, aggregator?: string, values: Sample[],
 *   nativeHistograms?: NativeJson[]}} JsonMetric
 */
/** @typedef {(metrics: JsonMetric[]) => JsonMetric | undefined} Aggregator */

/** The default of `nativeHistogramMaxExemplars`. */
const MOST_EXEMPLARS = 10;

/** Loaded on first use, so programs without native histograms do not load these files. */
const natives = () => ({ ...require('../../series/native-json'), ...require('../../series/merged-buckets') });

/**
 * Groups the samples, or native histograms, of one name and label set, in order of first appearance.
 *
 * @template {Grouped} T
 * @param {T[][]} lists one for each metric
 * @returns {T[][]}
 */
function grouped(lists) {
  /** @type {T[][]} */
  const groups = [];
  /** @type {Map<string, number>} */
  const indexes = new Map();
  for (const list of lists) {
    let next = 0;
    for (const sample of list) {
      // Processes of one program have the same samples, nearly all in the same order, and comparing two label
      // sets takes a fifth of the time of a look-up.
      const index = belongsTo(groups[next], sample) ? next : indexOf(sample, groups, indexes);
      groups[index].push(sample);
      next = index + 1;
    }
  }
  return groups;
}

/**
 * @param {string} type
 * @returns {string | undefined} the label of samples that each process computes; undefined if there are none
 */
function quantileLabelOf(type) {
  const { isComputed, marker } = kindOfType(type);
  return isComputed ? marker : undefined;
}

/**
 * @param {Grouped[] | undefined} group
 * @param {Grouped} sample
 * @returns {boolean} may be false although the label sets are equal: only a quick comparison is made
 */
function belongsTo(group, { metricName, labels }) {
  if (group === undefined || group[0].metricName !== metricName) return false;
  const others = group[0].labels ?? {};
  const names = Object.keys(labels ?? {});
  if (names.length !== Object.keys(others).length) return false;
  for (const name of names) if (labels[name] === undefined || labels[name] !== others[name]) return false;
  return true;
}

/**
 * @param {Grouped} sample
 * @param {Grouped[][]} groups a new one is added if needed
 * @param {Map<string, number>} indexes of the groups
 * @returns {number}
 */
function indexOf({ metricName, labels }, groups, indexes) {
  const key = `${metricName} ${keyOf(labels)}`;
  let index = indexes.get(key);
  if (index === undefined) {
    index = groups.push([]) - 1;
    indexes.set(key, index);
  }
  return index;
}

/**
 * A text that only equal label sets share, because each part is preceded by its length. A label that is
 * undefined counts as missing, because it is missing in the text of JSON.
 *
 * @param {Record<string, unknown>} labels
 * @param {string} [except]
 */
function keyOf(labels, except) {
  const names = Object.keys(labels ?? {});
  if (names.length > 1) names.sort();
  let key = '';
  for (const name of names) {
    if (name === except || labels[name] === undefined) continue;
    const value = String(labels[name]);
    key += `${name.length} ${value.length} ${name}${value}`;
  }
  return key;
}

/**
 * @param {JsonMetric[]} metrics
 * @returns {Map<Sample, number>} of summaries: for each sample the number of observations
 */
function weightsOf(metrics) {
  const summaries = metrics.filter(({ type }) => quantileLabelOf(type) !== undefined);
  const weights = summaries.flatMap(({ name, values }) => {
    const counts = values.filter(({ metricName }) => metricName === `${name}_count`);
    const countOf = new Map(counts.map(({ labels, value }) => [keyOf(labels), value]));
    return values.map(
      sample => /** @type {const} */ ([sample, countOf.get(keyOf(sample.labels, 'quantile')) ?? 0]),
    );
  });
  return new Map(weights);
}

/**
 * An aggregator that computes one value from the values of each sample.
 *
 * @param {(samples: Sample[], weights: Map<Sample, number> | undefined) => number} combine `weights` if they
 *   are quantiles
 * @param {(series: NativeJson[]) => NativeJson} [combineNative] the same for native histograms; without it,
 *   or if some of the metrics are classic, native histograms are left out
 * @returns {Aggregator}
 */
function aggregatorOf(combine, combineNative) {
  return metrics => {
    if (metrics.length === 0) return undefined;
    const [{ help, name, type, aggregator }] = metrics;
    const quantileLabel = quantileLabelOf(type);
    const weights = quantileLabel === undefined ? undefined : weightsOf(metrics);
    const values = grouped(metrics.map(metric => metric.values)).map(samples => {
      const [{ labels, metricName }] = samples;
      const isQuantile = quantileLabel !== undefined && Object.hasOwn(labels ?? {}, quantileLabel);
      const value = combine(samples, isQuantile ? weights : undefined);
      return metricName === undefined ? { value, labels } : { value, labels, metricName };
    });
    const combined = { help, name, type, values, aggregator };
    if (combineNative === undefined || !metrics.every(metric => metric.nativeHistograms)) return combined;
    try {
      const lists = metrics.map(metric => metric.nativeHistograms ?? []);
      return { ...combined, nativeHistograms: grouped(lists).map(combineNative) };
    } catch {
      // Another library may use the same key: prom-client does not have it, and reads only the values.
      return combined;
    }
  };
}

/**
 * @param {NativeJson[]} series at least one
 * @returns {NativeJson} their sum, with the earliest start
 */
function nativeSum(series) {
  const { nativeJson, bucketsIn, mergeBuckets } = natives();
  const [{ labels }] = series;
  const starts = series.map(({ createdTimestamp }) => createdTimestamp ?? 0);
  /** @type {any[]} */
  const exemplars = series.flatMap(({ exemplars: own }) => own ?? []);
  const most = Math.max(MOST_EXEMPLARS, ...series.map(({ exemplars: own }) => own?.length ?? 0));
  return nativeJson(mergeBuckets(series.map(bucketsIn)), {
    labels,
    sum: series.reduce((sum, each) => sum + each.sum, 0),
    createdTimestamp: Math.min(...starts) || undefined,
    exemplars: exemplars.sort((a, b) => a?.timestamp - b?.timestamp).slice(-most),
  });
}

/**
 * @param {string} rule
 * @returns {(samples: Sample[]) => number}
 */
const combiner = rule => samples => aggregated(rule, Array.from(samples, valueOf));

const valueOf = (/** @type {Sample} */ { value }) => value;
const total = combiner('sum');

/**
 * @param {Sample[]} samples
 * @param {Map<Sample, number>} weights a sample that has none, because its metric is not a summary in all
 *   processes, counts as one observation
 */
function weightedMean(samples, weights) {
  const weighted = samples.map(sample => ({ value: sample.value, weight: weights.get(sample) ?? 1 }));
  return weighted.every(({ weight }) => weight === 0) ? samples[0].value : meanQuantile(weighted);
}

/**
 * The aggregators by name. An application may add its own, or replace one.
 *
 * @type {Record<string, Aggregator>}
 */
const aggregators = {
  sum: aggregatorOf(
    (samples, weights) => (weights === undefined ? total(samples) : weightedMean(samples, weights)),
    nativeSum,
  ),
  first: aggregatorOf(combiner('first'), ([series]) => series),
  omit: () => undefined,
  average: aggregatorOf(combiner('average')),
  min: aggregatorOf(combiner('min')),
  max: aggregatorOf(combiner('max')),
};

const BUILT_IN = new Map(Object.entries(aggregators));

/** @returns {string[]} the names of aggregators that the application has added or replaced */
function customAggregators() {
  return Object.keys(aggregators).filter(name => aggregators[name] !== BUILT_IN.get(name));
}

/**
 * A copy of what an application's aggregator has returned, which can be sent to a thread. Whether its values
 * can be read is seen there.
 *
 * @param {any} result
 * @returns {JsonMetric | undefined | null} undefined if it leaves the metric out; null if it is not a metric
 */
function plainMetric(result) {
  if (!result) return undefined;
  try {
    // An async function may reject, and nobody else handles that.
    if (typeof result.then === 'function') result.then(undefined, () => {});
    const { name, help, type, nativeHistograms } = result;
    if (typeof name !== 'string') return null;
    const values = Array.from(result.values, plainSample);
    return structuredClone({ name, help: `${help}`, type: `${type}`, values, nativeHistograms });
  } catch {
    return null;
  }
}

/** @param {any} sample which may have methods */
function plainSample({ value, labels, sharedLabels, metricName, exemplar }) {
  return { value, labels, sharedLabels, metricName, exemplar };
}

module.exports = { aggregators, aggregatorOf, customAggregators, plainMetric };
