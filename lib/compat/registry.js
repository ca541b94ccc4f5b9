'use strict';

// prom-client/lib/registry

module.exports = require('../registry/registry').Registry;

// Never called. Node's static analysis of CommonJS exports finds the names of static members here, so ES
// modules can import them.
void ((/** @type {any} */ module, /** @type {any} */ members) => {
  const { aggregate, globalRegistry, merge, shared } = members;
  const { PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, PROMETHEUS_PROTOBUF_CONTENT_TYPE } = members;
  module.exports = {
    aggregate,
    globalRegistry,
    merge,
    shared,
    PROMETHEUS_CONTENT_TYPE,
    OPENMETRICS_CONTENT_TYPE,
    PROMETHEUS_PROTOBUF_CONTENT_TYPE,
  };
});
