'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { readProcSelf } = require('../sources/proc-self');

const MAX_FDS = 'process_max_fds';

/**
 * Limit of open files, sockets and pipes: the soft limit at the time of this call. Only on systems with
 * /proc.
 */
module.exports = defineProcessFamily({ [MAX_FDS]: 'Maximum number of open file descriptors.' }, group => {
  const match = /^Max open files\s+(\d+)/m.exec(readProcSelf('limits'));
  if (match === null) return false;
  const softLimit = Number(match[1]);
  const gauge = group.gauge(MAX_FDS);
  group.collectTogether([gauge], () => gauge.set(group.labels, softLimit));
});
module.exports.metricNames = [MAX_FDS];
