'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { shortNameOf } = require('../sources/heap-space-name');

const TOTAL = 'nodejs_heap_space_size_total_bytes';
const USED = 'nodejs_heap_space_size_used_bytes';
const AVAILABLE = 'nodejs_heap_space_size_available_bytes';

/** Sizes of the spaces of V8's heap. */
const heapSpacesSizeAndUsed = defineFamily(group => {
  const v8 = require('v8');
  const labelNames = ['space'];
  const total = group.gauge({
    name: TOTAL,
    help: 'Process heap space size total from Node.js in bytes.',
    labelNames,
  });
  const used = group.gauge({
    name: USED,
    help: 'Process heap space size used from Node.js in bytes.',
    labelNames,
  });
  const available = group.gauge({
    name: AVAILABLE,
    help: 'Process heap space size available from Node.js in bytes.',
    labelNames,
  });
  group.collectLater([total, used, available], () => {
    for (const space of v8.getHeapSpaceStatistics()) {
      const labels = { space: shortNameOf(space.space_name), ...group.labels };
      total.set(labels, space.space_size);
      used.set(labels, space.space_used_size);
      available.set(labels, space.space_available_size);
    }
  });
});

module.exports = heapSpacesSizeAndUsed;
module.exports.metricNames = [TOTAL, USED, AVAILABLE];
