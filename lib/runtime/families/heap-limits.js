'use strict';

const { defineFamily } = require('../sampling/metric-group');

const LIMIT = 'nodejs_heap_limit_bytes';

const HELPS = {
  [LIMIT]: 'Limit of the JavaScript heap in bytes; V8 aborts the process beyond it.',
  nodejs_heap_space_used_bytes: 'Bytes used by objects, by heap space.',
  nodejs_heap_space_committed_bytes: 'Bytes that V8 has taken from the operating system, by heap space.',
  nodejs_heap_space_physical_bytes: 'Bytes backed by physical memory, by heap space.',
};

/**
 * The figures for sizing the old and the new space: the heap's limit, and the used, committed and physical
 * bytes of each space. In a worker thread: of that thread's heap.
 */
module.exports = defineFamily(HELPS, group => {
  const v8 = require('v8');
  const gauges = group.names.map(name => group.gauge(name, { labelNames: name === LIMIT ? [] : ['space'] }));
  const [limit, used, committed, physical] = gauges;
  group.collectLater(gauges, () => {
    limit.set(group.labels, v8.getHeapStatistics().heap_size_limit);
    for (const space of v8.getHeapSpaceStatistics()) {
      const labels = { space: space.space_name.replace(/_space.*/, ''), ...group.labels };
      used.set(labels, space.space_used_size);
      committed.set(labels, space.space_size);
      physical.set(labels, space.physical_space_size);
    }
  });
});
