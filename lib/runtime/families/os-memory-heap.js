'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { isOnProcSelf, readProcSelf } = require('../sources/proc-self');

const RESIDENT = 'process_resident_memory_bytes';
const VIRTUAL = 'process_virtual_memory_bytes';
const DATA = 'process_heap_bytes';

const KILOBYTE = 1024;

/**
 * Memory of the process as reported by the operating system: resident, virtual and data size from /proc; only
 * the resident size on other systems.
 */
const osMemoryHeap = defineProcessFamily(group => {
  const resident = group.gauge({ name: RESIDENT, help: 'Resident memory size in bytes.' });
  if (!isOnProcSelf('status')) {
    followNode(group, resident);
    return;
  }
  const virtual = group.gauge({ name: VIRTUAL, help: 'Virtual memory size in bytes.' });
  const data = group.gauge({ name: DATA, help: 'Process heap size in bytes.' });
  group.collectLater([resident, virtual, data], () => {
    const status = readProcSelf('status');
    if (status === undefined) return;
    setFrom(status, /^VmRSS:\s*(\d+)/m, resident, group.labels);
    setFrom(status, /^VmSize:\s*(\d+)/m, virtual, group.labels);
    setFrom(status, /^VmData:\s*(\d+)/m, data, group.labels);
  });
});

/**
 * @param {string} status
 * @param {RegExp} line
 * @param {import('../../metric/gauge').Gauge} gauge
 * @param {Record<string, string | number>} labels
 */
function setFrom(status, line, gauge, labels) {
  const match = line.exec(status);
  if (match !== null) gauge.set(labels, Number(match[1]) * KILOBYTE);
}

/**
 * @param {import('../sampling/metric-group').MetricGroup} group
 * @param {import('../../metric/gauge').Gauge} resident
 */
function followNode(group, resident) {
  const { memoryUsage } = require('../sources/node-memory');
  group.collectTogether([resident], () => {
    const usage = memoryUsage();
    if (usage !== undefined) resident.set(group.labels, usage.rss);
  });
}

module.exports = osMemoryHeap;
module.exports.metricNames = [RESIDENT, VIRTUAL, DATA];
