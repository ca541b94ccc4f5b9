'use strict';

const { activeCounts, classNameOf } = require('../sampling/active-counts');

const node = /** @type {any} */ (process);
const names = ['nodejs_active_requests', 'nodejs_active_requests_total'];

/** Active libuv requests: file operations, writes and connects. Only if the runtime reports them. */
module.exports = activeCounts({
  names,
  helps: [
    'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
    'Total number of active requests.',
  ],
  isSupported: () => typeof node._getActiveRequests === 'function',
  types: () => node._getActiveRequests().map(classNameOf),
});
module.exports.metricNames = names;
