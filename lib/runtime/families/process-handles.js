'use strict';

const { activeCounts, classNameOf } = require('../sampling/active-counts');

const names = ['nodejs_active_handles', 'nodejs_active_handles_total'];

/**
 * Active libuv handles: sockets, servers, child processes. Only if the runtime reports them.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processHandles(registry, config = {}) {
  const node = /** @type {any} */ (process);
  if (typeof node._getActiveHandles !== 'function') return undefined;
  return activeCounts(registry, config, {
    names,
    helps: [
      'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
      'Total number of active handles.',
    ],
    types: () => node._getActiveHandles().map(classNameOf),
  });
}

module.exports = processHandles;
module.exports.metricNames = names;
