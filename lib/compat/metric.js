'use strict';

// prom-client/lib/metric

const { Metric } = require('../metric/metric');

module.exports = { Metric };
