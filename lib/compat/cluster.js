'use strict';

// prom-client/lib/cluster

module.exports = require('../cluster/aggregator-registry').AggregatorRegistry;
