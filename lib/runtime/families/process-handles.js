'use strict';

const { activeCounts, classNameOf } = require('../sampling/active-counts');

const node = /** @type {any} */ (process);
const names = ['nodejs_active_handles', 'nodejs_active_handles_total'];

/** Active libuv handles: sockets, servers, child processes. Only if the runtime reports them. */
module.exports = activeCounts({
  names,
  helps: [
    'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
    'Total number of active handles.',
  ],
  isSupported: () => typeof node._getActiveHandles === 'function',
  types: () => node._getActiveHandles().map(classNameOf),
});
module.exports.metricNames = names;
