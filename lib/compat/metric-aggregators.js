'use strict';

// prom-client/lib/metricAggregators

const { aggregators, aggregatorOf } = require('../cluster/primary/json-aggregators');

/** @typedef {import('../cluster/primary/json-aggregators').Sample} Sample */

/**
 * Creates an aggregator from a function that combines the samples of one label set into one number.
 *
 * @param {(samples: Sample[]) => number} combine
 * @returns {import('../cluster/primary/json-aggregators').Aggregator}
 */
function AggregatorFactory(combine) {
  return aggregatorOf(samples => combine(samples));
}

module.exports = { aggregators, AggregatorFactory };
