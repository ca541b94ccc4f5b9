'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { memoryUsage } = require('../sources/node-memory');

const ARRAY_BUFFERS = 'nodejs_array_buffers_bytes';
const MALLOCED = 'nodejs_malloced_memory_bytes';
const MALLOCED_PEAK = 'nodejs_malloced_memory_peak_bytes';

/** Memory outside the heap spaces: of buffers, and of V8 itself. In a worker thread: of that thread. */
const memoryOutsideHeap = defineFamily(group => {
  const v8 = require('v8');
  const arrayBuffers = group.gauge({
    name: ARRAY_BUFFERS,
    help: 'Memory of ArrayBuffers and Buffers in bytes; part of the external memory.',
  });
  const malloced = group.gauge({
    name: MALLOCED,
    help: 'Memory in bytes that V8 has allocated with malloc() for its own use.',
  });
  const peak = group.gauge({
    name: MALLOCED_PEAK,
    help: 'Peak of the memory in bytes that V8 has allocated with malloc() for its own use.',
    // Workers peak at different times, so the sum of their peaks means nothing.
    aggregator: 'max',
  });
  group.collectLater([arrayBuffers, malloced, peak], () => {
    const usage = memoryUsage();
    if (usage !== undefined) arrayBuffers.set(group.labels, usage.arrayBuffers);
    const heap = v8.getHeapStatistics();
    malloced.set(group.labels, heap.malloced_memory);
    peak.set(group.labels, heap.peak_malloced_memory);
  });
});

module.exports = memoryOutsideHeap;
module.exports.metricNames = [ARRAY_BUFFERS, MALLOCED, MALLOCED_PEAK];
