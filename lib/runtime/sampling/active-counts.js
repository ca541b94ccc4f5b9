'use strict';

const { defineFamily } = require('./metric-group');

/**
 * Defines a family of two gauges that count active objects: by type, and all together.
 *
 * @param {object} family
 * @param {string[]} family.names
 * @param {string[]} family.helps
 * @param {() => boolean} family.isSupported
 * @param {() => string[]} family.types the type of each active object
 */
function activeCounts({ names, helps, isSupported, types }) {
  const [name, totalName] = names;
  const [help, totalHelp] = helps;
  return defineFamily(group => {
    if (!isSupported()) return false;
    const byType = group.gauge({ name, help, labelNames: ['type'] });
    const total = group.gauge({ name: totalName, help: totalHelp });
    group.collectTogether([byType, total], () => {
      const active = types();
      /** @type {Map<string, number>} */
      const counts = new Map();
      for (const type of active) counts.set(type, (counts.get(type) ?? 0) + 1);
      // A type without active objects has no sample.
      byType.reset();
      for (const [type, count] of counts) byType.set({ type, ...group.labels }, count);
      total.set(group.labels, active.length);
    });
  });
}

/**
 * @param {any} object
 * @returns {string} the name of its class
 */
function classNameOf(object) {
  return object?.constructor?.name ?? 'Object';
}

module.exports = { activeCounts, classNameOf };
