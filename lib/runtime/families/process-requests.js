'use strict';

const { activeCounts, classNameOf } = require('../sampling/active-counts');

const names = ['nodejs_active_requests', 'nodejs_active_requests_total'];

/**
 * Active libuv requests: pending file operations, writes and connects. Only if the runtime reports them.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processRequests(registry, config = {}) {
  const node = /** @type {any} */ (process);
  if (typeof node._getActiveRequests !== 'function') return undefined;
  return activeCounts(registry, config, {
    names,
    helps: [
      'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
      'Total number of active requests.',
    ],
    types: () => node._getActiveRequests().map(classNameOf),
  });
}

module.exports = processRequests;
module.exports.metricNames = names;
