'use strict';

const { defineFamily } = require('./metric-group');

/**
 * Defines a family of two gauges that count active objects: by type, and all together.
 *
 * @param {Record<string, string>} helps HELP texts by the names of the two
 * @param {'_getActiveHandles' | '_getActiveRequests' | 'getActiveResourcesInfo'} method of `process`, which
 *   lists them; a runtime without it has no such family
 */
function activeCounts(helps, method) {
  const host = /** @type {any} */ (process);
  return defineFamily(helps, group => {
    if (typeof host[method] !== 'function') return false;
    const byType = group.gauge(group.names[0], { labelNames: ['type'] });
    const total = group.gauge(group.names[1]);
    group.collectTogether([byType, total], () => {
      /** @type {string[]} */
      const types = host[method]().map(typeOf);
      /** @type {Map<string, number>} */
      const counts = new Map();
      for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
      // A type without active objects has no sample.
      byType.reset();
      for (const [type, count] of counts) byType.set({ type, ...group.labels }, count);
      total.set(group.labels, types.length);
    });
  });
}

/**
 * @param {any} object or its type as text
 * @returns {string} the name of its class
 */
function typeOf(object) {
  return typeof object === 'string' ? object : (object?.constructor?.name ?? 'Object');
}

module.exports = { activeCounts };
