'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { readProcSelf } = require('../sources/proc-self');

const MAX_FDS = 'process_max_fds';

/**
 * Limit of open files, sockets and pipes: the soft limit at the time of this call. Only on systems with
 * /proc.
 */
const processMaxFileDescriptors = defineProcessFamily(group => {
  const limits = readProcSelf('limits');
  const match = /^Max open files\s+(\d+)/m.exec(limits ?? '');
  if (match === null) return false;
  const softLimit = Number(match[1]);
  const gauge = group.gauge({ name: MAX_FDS, help: 'Maximum number of open file descriptors.' });
  group.collectTogether([gauge], () => gauge.set(group.labels, softLimit));
});

module.exports = processMaxFileDescriptors;
module.exports.metricNames = [MAX_FDS];
