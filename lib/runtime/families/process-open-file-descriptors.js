'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { isOnProcSelf, fileDescriptorCounter } = require('../sources/proc-self');

const OPEN_FDS = 'process_open_fds';

/** Open files, sockets and pipes of the process. Only on systems with /proc. */
module.exports = defineProcessFamily({ [OPEN_FDS]: 'Number of open file descriptors.' }, group => {
  if (!isOnProcSelf('fd')) return false;
  const gauge = group.gauge(OPEN_FDS);
  const count = fileDescriptorCounter();
  group.collectTogether([gauge], () => gauge.set(group.labels, count()));
});
module.exports.metricNames = [OPEN_FDS];
