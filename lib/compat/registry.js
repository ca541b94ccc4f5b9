'use strict';

// prom-client/lib/registry

module.exports = require('../registry/registry').Registry;

// Never called. Node's scanner of CommonJS exports, which reads and does not run, takes the names of static members from
// it, so that ES modules can import them.
void ((/** @type {any} */ module, /** @type {any} */ members) => {
  const { globalRegistry, merge, PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE } = members;
  module.exports = { globalRegistry, merge, PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE };
});
