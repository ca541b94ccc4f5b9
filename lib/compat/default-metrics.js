'use strict';

// prom-client/lib/defaultMetrics

const collectDefaultMetrics = require('../runtime/default-metrics');

module.exports = collectDefaultMetrics;
// See registry.js.
module.exports.metricsList = collectDefaultMetrics.metricsList;
