'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { memoryUsage } = require('../sources/node-memory');

const TOTAL = 'nodejs_heap_size_total_bytes';
const USED = 'nodejs_heap_size_used_bytes';
const EXTERNAL = 'nodejs_external_memory_bytes';

/**
 * Size of the JavaScript heap, and of the memory outside it that its objects hold. In a worker thread: of
 * that thread's heap.
 */
const heapSizeAndUsed = defineFamily(group => {
  if (typeof process.memoryUsage !== 'function') return false;
  const total = group.gauge({ name: TOTAL, help: 'Process heap size from Node.js in bytes.' });
  const used = group.gauge({ name: USED, help: 'Process heap size used from Node.js in bytes.' });
  const external = group.gauge({
    name: EXTERNAL,
    help: 'Node.js external memory size in bytes.',
  });
  group.collectTogether([total, used, external], () => {
    const usage = memoryUsage();
    if (usage === undefined) return;
    total.set(group.labels, usage.heapTotal);
    used.set(group.labels, usage.heapUsed);
    if (usage.external !== undefined) external.set(group.labels, usage.external);
  });
});

module.exports = heapSizeAndUsed;
module.exports.metricNames = [TOTAL, USED, EXTERNAL];
