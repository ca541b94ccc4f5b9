'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { isOnProcSelf, readProcSelf } = require('../sources/proc-self');

const RESIDENT = 'process_resident_memory_bytes';

const HELPS = {
  [RESIDENT]: 'Resident memory size in bytes.',
  process_virtual_memory_bytes: 'Virtual memory size in bytes.',
  process_heap_bytes: 'Process heap size in bytes.',
};

/** The lines of /proc/self/status that have them, in kilobytes. */
const LINES = [/^VmRSS:\s*(\d+)/m, /^VmSize:\s*(\d+)/m, /^VmData:\s*(\d+)/m];

const KILOBYTE = 1024;

/**
 * Memory of the process as reported by the operating system: resident, virtual and data size from /proc; only
 * the resident size on other systems.
 */
module.exports = defineProcessFamily(HELPS, group => {
  if (!isOnProcSelf('status')) {
    const resident = group.gauge(RESIDENT);
    group.collectTogether([resident], () => resident.set(group.labels, process.memoryUsage().rss));
    return;
  }
  const gauges = group.names.map(name => group.gauge(name));
  group.collectLater(gauges, () => {
    const status = readProcSelf('status');
    for (const [i, gauge] of gauges.entries()) {
      const match = LINES[i].exec(status);
      if (match !== null) gauge.set(group.labels, Number(match[1]) * KILOBYTE);
    }
  });
});
module.exports.metricNames = Object.keys(HELPS);
