'use strict';

// prom-client/lib/metricAggregators

const { aggregators, aggregatorOf } = require('../cluster/aggregation-rules');

/** @typedef {import('../cluster/aggregation-rules').Sample} Sample */

/**
 * An aggregator that makes one number of the samples which several processes have of one name and label set.
 *
 * @param {(samples: Sample[]) => number} combine
 * @returns {import('../cluster/aggregation-rules').Aggregator}
 */
function AggregatorFactory(combine) {
  return aggregatorOf(samples => combine(samples));
}

module.exports = { aggregators, AggregatorFactory };
