'use strict';

const { activeCounts } = require('../sampling/active-counts');

const HELPS = {
  nodejs_active_resources:
    'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
  nodejs_active_resources_total: 'Total number of active resources.',
};

/** Resources that keep the event loop alive: timers, sockets. Only if the runtime reports them. */
module.exports = activeCounts(HELPS, 'getActiveResourcesInfo');
module.exports.metricNames = Object.keys(HELPS);
