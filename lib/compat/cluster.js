'use strict';

// prom-client/lib/cluster

module.exports = require('../cluster/aggregator-registry').AggregatorRegistry;

// Never called: see registry.js.
void ((/** @type {any} */ module, /** @type {any} */ members) => {
  const { aggregate, setRegistries } = members;
  const { globalRegistry, merge, shared } = members;
  const { PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, PROMETHEUS_PROTOBUF_CONTENT_TYPE } = members;
  module.exports = {
    aggregate,
    setRegistries,
    globalRegistry,
    merge,
    shared,
    PROMETHEUS_CONTENT_TYPE,
    OPENMETRICS_CONTENT_TYPE,
    PROMETHEUS_PROTOBUF_CONTENT_TYPE,
  };
});
