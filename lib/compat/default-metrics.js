'use strict';

// prom-client/lib/defaultMetrics

const collectDefaultMetrics = require('../runtime/default-metrics');

module.exports = collectDefaultMetrics;
// Node.js finds this name by static analysis, so ES modules can import it.
module.exports.metricsList = collectDefaultMetrics.metricsList;
