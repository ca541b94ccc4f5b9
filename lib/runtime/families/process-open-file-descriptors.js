'use strict';

const { MetricGroup } = require('../sampling/metric-group');
const { isOnProcSelf, fileDescriptorCounter } = require('../sources/proc-self');

const OPEN_FDS = 'process_open_fds';

/**
 * Open files, sockets and pipes of the process. Only on systems with /proc.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processOpenFileDescriptors(registry, config = {}) {
  if (!isOnProcSelf('fd')) return undefined;
  return MetricGroup.build(registry, config, group => {
    const gauge = group.gauge({ name: OPEN_FDS, help: 'Number of open file descriptors.' });
    const count = fileDescriptorCounter();
    group.collectTogether([gauge], () => {
      const descriptors = count();
      if (descriptors !== undefined) gauge.set(group.labels, descriptors);
    });
  });
}

module.exports = processOpenFileDescriptors;
module.exports.metricNames = [OPEN_FDS];
