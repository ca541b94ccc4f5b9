'use strict';

const { MetricGroup } = require('../sampling/metric-group');
const { memoryUsage } = require('../sources/node-memory');

const ARRAY_BUFFERS = 'nodejs_array_buffers_bytes';
const MALLOCED = 'nodejs_malloced_memory_bytes';
const MALLOCED_PEAK = 'nodejs_malloced_memory_peak_bytes';

/**
 * Memory that no heap space shows: of buffers, and of V8 itself. In a worker thread: that thread's.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function memoryBesideHeap(registry, config = {}) {
  const v8 = require('v8');
  return MetricGroup.build(registry, config, group => {
    const arrayBuffers = group.gauge({
      name: ARRAY_BUFFERS,
      help: 'Memory of ArrayBuffers and Buffers in bytes. A part of the external memory.',
    });
    const malloced = group.gauge({
      name: MALLOCED,
      help: 'Memory in bytes that V8 has taken from malloc() for itself.',
    });
    const peak = group.gauge({
      name: MALLOCED_PEAK,
      help: 'The most memory in bytes that V8 has had from malloc() for itself.',
      // Peaks of different times: their sum never was.
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
}

module.exports = memoryBesideHeap;
module.exports.metricNames = [ARRAY_BUFFERS, MALLOCED, MALLOCED_PEAK];
