'use strict';

const { defineFamily } = require('../sampling/metric-group');

const HELPS = {
  nodejs_heap_size_total_bytes: 'Process heap size from Node.js in bytes.',
  nodejs_heap_size_used_bytes: 'Process heap size used from Node.js in bytes.',
  nodejs_external_memory_bytes: 'Node.js external memory size in bytes.',
};

/**
 * Size of the JavaScript heap, and of the memory outside it that its objects hold. In a worker thread: of
 * that thread's heap.
 */
module.exports = defineFamily(HELPS, group => {
  const gauges = group.names.map(name => group.gauge(name));
  const [total, used, external] = gauges;
  group.collectTogether(gauges, () => {
    const usage = process.memoryUsage();
    total.set(group.labels, usage.heapTotal);
    used.set(group.labels, usage.heapUsed);
    external.set(group.labels, usage.external);
  });
});
module.exports.metricNames = Object.keys(HELPS);
