'use strict';

// Runs on the primary's loop. The aggregators by name: each combines the values of several processes into
// one. These functions work on prom-client's JSON, for AggregatorRegistry.aggregate() and for applications
// that call them. The cluster store applies the same rules to its columns (family-totals.js).

const { aggregated, kindOfType } = require('../../series/layouts');
const { meanQuantile } = require('../../metric/centroids');

/** @typedef {import('../../series/native-json').NativeJson} NativeJson */
/** @typedef {{value: number, labels: Record<string, unknown>, metricName?: string}} Sample */
/**
 * @typedef {{help: string, name: string, type: string, aggregator?: string, values: Sample[],
 *   nativeHistograms?: NativeJson[]}} JsonMetric
 */
/** @typedef {(metrics: JsonMetric[]) => JsonMetric | undefined} Aggregator */

/**
 * The samples of one name and label set.
 *
 * @typedef {{samples: Sample[], weights: number[]}} Group `weights`: for summaries, the number of
 *   observations per sample
 */

/** The default of `nativeHistogramMaxExemplars`. */
const MOST_EXEMPLARS = 10;

/** Loaded on first use, so programs without native histograms do not load these files. */
const natives = () => ({ ...require('../../series/native-json'), ...require('../../series/merged-buckets') });

/**
 * Groups the samples of one name and label set, in order of first appearance.
 *
 * @param {JsonMetric[]} metrics
 * @returns {Group[]}
 */
function groupSamples(metrics) {
  /** @type {Group[]} */
  const groups = [];
  /** @type {Map<string, number>} */
  const indexes = new Map();
  const isWeighted = metrics.some(({ type }) => quantileLabelOf(type) !== undefined);
  for (const metric of metrics) {
    const weightOf = quantileLabelOf(metric.type) === undefined ? undefined : observationCounts(metric);
    let next = 0;
    for (const sample of metric.values) {
      // Processes of one program have the same samples, nearly all in the same order, and comparing two label
      // sets takes a fifth of the time of a look-up.
      const index = belongsTo(groups[next], sample) ? next : indexOf(sample, groups, indexes);
      groups[index].samples.push(sample);
      if (isWeighted) groups[index].weights.push(weightIn(weightOf, sample));
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
 * @param {Map<string, number> | undefined} weightOf undefined if this process's metric is not a summary,
 *   although another's is
 * @param {Sample} sample
 */
function weightIn(weightOf, { labels }) {
  return weightOf === undefined ? 1 : (weightOf.get(keyOf(labels, 'quantile')) ?? 0);
}

/**
 * @param {Group | undefined} group
 * @param {Sample} sample
 * @returns {boolean} may be false although the label sets are equal: only a quick comparison is made
 */
function belongsTo(group, { metricName, labels }) {
  if (group === undefined || group.samples[0].metricName !== metricName) return false;
  const others = group.samples[0].labels ?? {};
  const names = Object.keys(labels ?? {});
  if (names.length !== Object.keys(others).length) return false;
  for (const name of names) if (labels[name] === undefined || labels[name] !== others[name]) return false;
  return true;
}

/**
 * @param {Sample} sample
 * @param {Group[]} groups a new one is added if needed
 * @param {Map<string, number>} indexes of the groups
 * @returns {number}
 */
function indexOf({ metricName, labels }, groups, indexes) {
  const key = `${metricName} ${keyOf(labels)}`;
  let index = indexes.get(key);
  if (index === undefined) {
    index = groups.push({ samples: [], weights: [] }) - 1;
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

/** @param {JsonMetric} summary */
function observationCounts(summary) {
  const counts = summary.values.filter(({ metricName }) => metricName === `${summary.name}_count`);
  return new Map(counts.map(({ labels, value }) => [keyOf(labels), value]));
}

/**
 * An aggregator that computes one value from the values of each sample.
 *
 * @param {(samples: Sample[], weights: number[], isQuantile: boolean) => number} combine
 * @param {(series: NativeJson[]) => NativeJson} [combineNative] the same for native histograms; without it,
 *   or if some of the metrics are classic, native histograms are left out
 * @returns {Aggregator}
 */
function aggregatorOf(combine, combineNative) {
  return metrics => {
    if (metrics.length === 0) return undefined;
    const [{ help, name, type, aggregator }] = metrics;
    const quantileLabel = quantileLabelOf(type);
    const values = groupSamples(metrics).map(({ samples, weights }) => {
      const [{ labels, metricName }] = samples;
      const isQuantile = quantileLabel !== undefined && Object.hasOwn(labels ?? {}, quantileLabel);
      const value = combine(samples, weights, isQuantile);
      return metricName === undefined ? { value, labels } : { value, labels, metricName };
    });
    const combined = { help, name, type, values, aggregator };
    if (combineNative === undefined || !metrics.every(metric => metric.nativeHistograms)) return combined;
    try {
      return { ...combined, nativeHistograms: groupNative(metrics).map(combineNative) };
    } catch {
      // Another library may use the same key: prom-client does not have it, and reads only the values.
      return combined;
    }
  };
}

/**
 * @param {JsonMetric[]} metrics
 * @returns {NativeJson[][]} one list for each label set, in order of first appearance
 */
function groupNative(metrics) {
  /** @type {Map<string, NativeJson[]>} */
  const groups = new Map();
  for (const series of metrics.flatMap(({ nativeHistograms }) => nativeHistograms ?? [])) {
    const key = keyOf(series.labels);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [series]);
    else group.push(series);
  }
  return [...groups.values()];
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
 * @param {number[]} weights
 */
function weightedMean(samples, weights) {
  if (weights.every(weight => weight === 0)) return samples[0].value;
  return meanQuantile(samples.map(({ value }, i) => ({ value, weight: weights[i] })));
}

/**
 * The aggregators by name. An application may add its own, or replace one.
 *
 * @type {Record<string, Aggregator>}
 */
const aggregators = {
  sum: aggregatorOf(
    (samples, weights, isQuantile) => (isQuantile ? weightedMean(samples, weights) : total(samples)),
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
