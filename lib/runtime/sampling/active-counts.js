'use strict';

const { MetricGroup } = require('./metric-group');

/**
 * Builds a family of two gauges that count active objects: by type, and all together.
 *
 * @param {import('../../registry/registry').Registry | undefined} registry
 * @param {import('./metric-group').FamilyConfig} config
 * @param {{names: string[], helps: string[], types: () => string[]}} family `types` returns the type of each
 *   active object
 */
function activeCounts(registry, config, { names, helps, types }) {
  const [name, totalName] = names;
  const [help, totalHelp] = helps;
  return MetricGroup.build(registry, config, group => {
    const byType = group.gauge({ name, help, labelNames: ['type'] });
    const total = group.gauge({ name: totalName, help: totalHelp });
    group.collectTogether([byType, total], () => {
      const active = types();
      // A type without active objects has no sample.
      byType.reset();
      for (const [type, count] of countEach(active)) byType.set({ type, ...group.labels }, count);
      total.set(group.labels, active.length);
    });
  });
}

/**
 * @param {string[]} types
 * @returns {Map<string, number>}
 */
function countEach(types) {
  const counts = new Map();
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}

/**
 * @param {any} object
 * @returns {string} the name of its class
 */
function classNameOf(object) {
  return object?.constructor?.name ?? 'Object';
}

module.exports = { activeCounts, classNameOf };
