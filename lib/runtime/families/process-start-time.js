'use strict';

const { MetricGroup } = require('../sampling/metric-group');

const START_TIME = 'process_start_time_seconds';

/**
 * When the process started.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processStartTime(registry, config = {}) {
  // Once: the difference of two clocks moves with each correction of the system's, but the start does not.
  const startTime = Math.round(Date.now() / 1000 - process.uptime());
  return MetricGroup.build(registry, config, group => {
    const gauge = group.gauge({
      name: START_TIME,
      help: 'Start time of the process since the Unix epoch in seconds.',
      aggregator: 'omit',
    });
    group.collectTogether([gauge], () => gauge.set(group.labels, startTime));
  });
}

module.exports = processStartTime;
module.exports.metricNames = [START_TIME];
