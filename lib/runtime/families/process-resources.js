'use strict';

const { activeCounts } = require('../sampling/active-counts');

const names = ['nodejs_active_resources', 'nodejs_active_resources_total'];

/**
 * Resources that keep the event loop alive: timers, sockets, pending file operations. Only if the runtime
 * reports them.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processResources(registry, config = {}) {
  if (typeof process.getActiveResourcesInfo !== 'function') return undefined;
  return activeCounts(registry, config, {
    names,
    helps: [
      'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
      'Total number of active resources.',
    ],
    types: () => process.getActiveResourcesInfo(),
  });
}

module.exports = processResources;
module.exports.metricNames = names;
