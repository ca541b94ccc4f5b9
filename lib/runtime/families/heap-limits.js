'use strict';

const { MetricGroup } = require('../sampling/metric-group');
const { shortNameOf } = require('./heap-spaces-size-and-used');

const LIMIT = 'nodejs_heap_limit_bytes';
const USED = 'nodejs_heap_space_used_bytes';
const COMMITTED = 'nodejs_heap_space_committed_bytes';
const PHYSICAL = 'nodejs_heap_space_physical_bytes';

/**
 * What the sizes of old and new space are chosen by: how large the heap may become, and what of each space is used,
 * taken from the system, and in memory. In a worker thread: that thread's heap.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function heapLimits(registry, config = {}) {
  const v8 = require('v8');
  return MetricGroup.build(registry, config, group => {
    const limit = group.gauge({
      name: LIMIT,
      help: 'Size in bytes that the JavaScript heap may reach before the process dies.',
    });
    const labelNames = ['space'];
    const used = group.gauge({ name: USED, help: 'Bytes of objects in each heap space.', labelNames });
    const committed = group.gauge({
      name: COMMITTED,
      help: 'Bytes that V8 has taken from the operating system for each heap space.',
      labelNames,
    });
    const physical = group.gauge({
      name: PHYSICAL,
      help: 'Bytes of each heap space that are backed by memory.',
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
}

module.exports = heapLimits;
module.exports.metricNames = [LIMIT, USED, COMMITTED, PHYSICAL];
