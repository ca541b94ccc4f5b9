'use strict';

const { defineFamily } = require('../sampling/metric-group');

const HELPS = {
  nodejs_heap_space_size_total_bytes: 'Process heap space size total from Node.js in bytes.',
  nodejs_heap_space_size_used_bytes: 'Process heap space size used from Node.js in bytes.',
  nodejs_heap_space_size_available_bytes: 'Process heap space size available from Node.js in bytes.',
};

/** Sizes of the spaces of V8's heap. */
module.exports = defineFamily(HELPS, group => {
  const v8 = require('v8');
  const gauges = group.names.map(name => group.gauge(name, { labelNames: ['space'] }));
  const [total, used, available] = gauges;
  group.collectLater(gauges, () => {
    for (const space of v8.getHeapSpaceStatistics()) {
      const labels = { space: space.space_name.replace(/_space.*/, ''), ...group.labels };
      total.set(labels, space.space_size);
      used.set(labels, space.space_used_size);
      available.set(labels, space.space_available_size);
    }
  });
});
module.exports.metricNames = Object.keys(HELPS);
