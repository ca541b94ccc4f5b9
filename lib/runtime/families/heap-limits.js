'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { shortNameOf } = require('../sources/heap-space-name');

const LIMIT = 'nodejs_heap_limit_bytes';
const USED = 'nodejs_heap_space_used_bytes';
const COMMITTED = 'nodejs_heap_space_committed_bytes';
const PHYSICAL = 'nodejs_heap_space_physical_bytes';

/**
 * The figures for sizing the old and the new space: the heap's limit, and the used, committed and physical
 * bytes of each space. In a worker thread: of that thread's heap.
 */
const heapLimits = defineFamily(group => {
  const v8 = require('v8');
  const limit = group.gauge({
    name: LIMIT,
    help: 'Limit of the JavaScript heap in bytes; V8 aborts the process beyond it.',
  });
  const labelNames = ['space'];
  const used = group.gauge({ name: USED, help: 'Bytes used by objects, by heap space.', labelNames });
  const committed = group.gauge({
    name: COMMITTED,
    help: 'Bytes that V8 has taken from the operating system, by heap space.',
    labelNames,
  });
  const physical = group.gauge({
    name: PHYSICAL,
    help: 'Bytes backed by physical memory, by heap space.',
    labelNames,
  });
  group.collectLater([limit, used, committed, physical], () => {
    limit.set(group.labels, v8.getHeapStatistics().heap_size_limit);
    for (const space of v8.getHeapSpaceStatistics()) {
      const labels = { space: shortNameOf(space.space_name), ...group.labels };
      used.set(labels, space.space_used_size);
      committed.set(labels, space.space_size);
      physical.set(labels, space.physical_space_size);
    }
  });
});

module.exports = heapLimits;
module.exports.metricNames = [LIMIT, USED, COMMITTED, PHYSICAL];
