'use strict';

const { MetricGroup } = require('../sampling/metric-group');

const START_TIME = 'process_start_time_seconds';

/**
 * Start time of the process.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processStartTime(registry, config = {}) {
  // Computed once: a later correction of the system's clock must not move it.
  const startTime = Math.round(Date.now() / 1000 - process.uptime());
  return MetricGroup.build(registry, config, group => {
    const gauge = group.gauge({
      name: START_TIME,
      help: 'Start time of the process since unix epoch in seconds.',
      aggregator: 'omit',
    });
    group.collectTogether([gauge], () => gauge.set(group.labels, startTime));
  });
}

module.exports = processStartTime;
module.exports.metricNames = [START_TIME];
