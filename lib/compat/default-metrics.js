'use strict';

// prom-client/lib/defaultMetrics

module.exports = require('../runtime/default-metrics');

// Never called: see registry.js.
void ((/** @type {any} */ module, /** @type {any} */ metricsList, /** @type {any} */ runtimeMetricsList) => {
  module.exports = { metricsList, runtimeMetricsList };
});
