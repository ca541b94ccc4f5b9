'use strict';

const { activeCounts } = require('../sampling/active-counts');

const HELPS = {
  nodejs_active_handles:
    'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
  nodejs_active_handles_total: 'Total number of active handles.',
};

/** Active libuv handles: sockets, servers, child processes. Only if the runtime reports them. */
module.exports = activeCounts(HELPS, '_getActiveHandles');
module.exports.metricNames = Object.keys(HELPS);
