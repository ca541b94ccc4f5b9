'use strict';

const { defineFamily } = require('../sampling/metric-group');

const HELPS = {
  nodejs_array_buffers_bytes: 'Memory of ArrayBuffers and Buffers in bytes; part of the external memory.',
  nodejs_malloced_memory_bytes: 'Memory in bytes that V8 has allocated with malloc() for its own use.',
  nodejs_malloced_memory_peak_bytes:
    'Peak of the memory in bytes that V8 has allocated with malloc() for its own use.',
};

/** Memory outside the heap spaces: of buffers, and of V8 itself. In a worker thread: of that thread. */
module.exports = defineFamily(HELPS, group => {
  const v8 = require('v8');
  // Workers peak at different times, so the sum of their peaks means nothing.
  const gauges = group.names.map(name =>
    group.gauge(name, name.includes('peak') ? { aggregator: 'max' } : undefined),
  );
  const [arrayBuffers, malloced, peak] = gauges;
  group.collectLater(gauges, () => {
    const heap = v8.getHeapStatistics();
    malloced.set(group.labels, heap.malloced_memory);
    peak.set(group.labels, heap.peak_malloced_memory);
    arrayBuffers.set(group.labels, process.memoryUsage().arrayBuffers);
  });
});
