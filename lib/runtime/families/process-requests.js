'use strict';

const { activeCounts } = require('../sampling/active-counts');

const HELPS = {
  nodejs_active_requests:
    'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
  nodejs_active_requests_total: 'Total number of active requests.',
};

/** Active libuv requests: file operations, writes and connects. Only if the runtime reports them. */
module.exports = activeCounts(HELPS, '_getActiveRequests');
module.exports.metricNames = Object.keys(HELPS);
