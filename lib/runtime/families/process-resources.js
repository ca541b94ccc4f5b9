'use strict';

const { activeCounts } = require('../sampling/active-counts');

const names = ['nodejs_active_resources', 'nodejs_active_resources_total'];

/** Resources that keep the event loop alive: timers, sockets. Only if the runtime reports them. */
module.exports = activeCounts({
  names,
  helps: [
    'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
    'Total number of active resources.',
  ],
  isSupported: () => typeof process.getActiveResourcesInfo === 'function',
  types: () => process.getActiveResourcesInfo(),
});
module.exports.metricNames = names;
