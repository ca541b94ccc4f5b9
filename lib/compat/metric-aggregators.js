'use strict';

// prom-client/lib/metricAggregators

const { aggregators, aggregatorOf } = require('../cluster/primary/json-aggregators');

/** @typedef {import('../cluster/primary/json-aggregators').Sample} Sample */

/**
 * An aggregator that makes one number of the samples which several processes have of one name and label set.
 *
 * @param {(samples: Sample[]) => number} combine
 * @returns {import('../cluster/primary/json-aggregators').Aggregator}
 */
function AggregatorFactory(combine) {
  return aggregatorOf(samples => combine(samples));
}

module.exports = { aggregators, AggregatorFactory };
