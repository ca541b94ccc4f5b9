'use strict';

// How the values of several processes become one, by the name that a metric carries in `aggregator`. These functions
// work on prom-client's JSON, for AggregatorRegistry.aggregate() and for those who call them; the cluster store has the
// same rules for its columns (cluster-family.js).

/** @typedef {{value: number, labels: Record<string, unknown>, metricName?: string}} Sample */
/** @typedef {{help: string, name: string, type: string, aggregator?: string, values: Sample[]}} JsonMetric */
/** @typedef {(metrics: JsonMetric[]) => JsonMetric | undefined} Aggregator */

/**
 * Groups the samples of one name and label set, in order of first appearance.
 *
 * @param {JsonMetric[]} metrics
 * @returns {{samples: Sample[], weights: number[]}[]} `weights`: the observations behind each sample's summary
 */
function groupSamples(metrics) {
  /** @type {Map<string, {samples: Sample[], weights: number[]}>} */
  const groups = new Map();
  for (const metric of metrics) {
    const weightOf = metric.type === 'summary' ? observationCounts(metric) : undefined;
    for (const sample of metric.values) {
      const key = `${sample.metricName} ${keyOf(sample.labels)}`;
      let group = groups.get(key);
      if (group === undefined) {
        group = { samples: [], weights: [] };
        groups.set(key, group);
      }
      group.samples.push(sample);
      group.weights.push(weightOf === undefined ? 1 : (weightOf.get(keyOf(sample.labels, 'quantile')) ?? 0));
    }
  }
  return [...groups.values()];
}

/**
 * A text that two label sets share only if they are the same: each part says how long it is.
 *
 * @param {Record<string, unknown>} labels
 * @param {string} [except]
 */
function keyOf(labels, except) {
  const names = Object.keys(labels ?? {});
  if (names.length > 1) names.sort();
  let key = '';
  for (const name of names) {
    if (name === except) continue;
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
 * An aggregator that computes one value of the values of each sample.
 *
 * @param {(samples: Sample[], weights: number[], isQuantile: boolean) => number} combine
 * @returns {Aggregator}
 */
function aggregatorOf(combine) {
  return metrics => {
    if (metrics.length === 0) return undefined;
    const [{ help, name, type, aggregator }] = metrics;
    const values = groupSamples(metrics).map(({ samples, weights }) => {
      const [{ labels, metricName }] = samples;
      const isQuantile = type === 'summary' && Object.hasOwn(labels ?? {}, 'quantile');
      const value = combine(samples, weights, isQuantile);
      return metricName === undefined ? { value, labels } : { value, labels, metricName };
    });
    return { help, name, type, values, aggregator };
  };
}

/** @param {Sample[]} samples */
function total(samples) {
  return samples.reduce((sum, { value }) => sum + value, 0);
}

/**
 * Quantiles cannot be added up: 1 and 3 are not 4. Without the digests behind them their mean by observations is what
 * comes closest.
 *
 * @param {Sample[]} samples
 * @param {number[]} weights
 */
function weightedMean(samples, weights) {
  const observations = weights.reduce((sum, weight) => sum + weight, 0);
  if (observations === 0) return samples[0].value;
  return samples.reduce((sum, { value }, i) => sum + value * weights[i], 0) / observations;
}

/**
 * The aggregators by name. A program may add its own, or replace one.
 *
 * @type {Record<string, Aggregator>}
 */
const aggregators = {
  sum: aggregatorOf((samples, weights, isQuantile) =>
    isQuantile ? weightedMean(samples, weights) : total(samples),
  ),
  first: aggregatorOf(samples => samples[0].value),
  omit: () => undefined,
  average: aggregatorOf(samples => total(samples) / samples.length),
  min: aggregatorOf(samples => samples.reduce((least, { value }) => Math.min(least, value), Infinity)),
  max: aggregatorOf(samples => samples.reduce((most, { value }) => Math.max(most, value), -Infinity)),
};

const BUILT_IN = new Map(Object.entries(aggregators));

/**
 * @param {string} name
 * @returns {boolean} whether the cluster store has that rule
 */
function isBuiltIn(name) {
  return BUILT_IN.has(name);
}

/** @returns {string[]} the names under which a program has put a function of its own */
function customAggregators() {
  return Object.keys(aggregators).filter(name => aggregators[name] !== BUILT_IN.get(name));
}

module.exports = { aggregators, aggregatorOf, isBuiltIn, customAggregators };
