'use strict';

const { defineFamily } = require('../sampling/metric-group');

const ARRAY_BUFFERS = 'nodejs_array_buffers_bytes';
const MALLOCED = 'nodejs_malloced_memory_bytes';
const MALLOCED_PEAK = 'nodejs_malloced_memory_peak_bytes';

const HELPS = {
  [ARRAY_BUFFERS]: 'Memory of ArrayBuffers and Buffers in bytes; part of the external memory.',
  [MALLOCED]: 'Memory in bytes that V8 has allocated with malloc() for its own use.',
  [MALLOCED_PEAK]: 'Peak of the memory in bytes that V8 has allocated with malloc() for its own use.',
};

/** Memory outside the heap spaces: of buffers, and of V8 itself. In a worker thread: of that thread. */
module.exports = defineFamily(HELPS, group => {
  const v8 = require('v8');
  const arrayBuffers = group.gauge(ARRAY_BUFFERS);
  const malloced = group.gauge(MALLOCED);
  // Workers peak at different times, so the sum of their peaks means nothing.
  const peak = group.gauge(MALLOCED_PEAK, { aggregator: 'max' });
  group.collectLater([arrayBuffers, malloced, peak], () => {
    const heap = v8.getHeapStatistics();
    malloced.set(group.labels, heap.malloced_memory);
    peak.set(group.labels, heap.peak_malloced_memory);
    arrayBuffers.set(group.labels, process.memoryUsage().arrayBuffers);
  });
});
module.exports.metricNames = Object.keys(HELPS);
