'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');

const START_TIME = 'process_start_time_seconds';

/** Start time of the process. */
const processStartTime = defineProcessFamily(group => {
  // Computed once: a later correction of the system's clock must not move it.
  const startTime = Math.round(Date.now() / 1000 - process.uptime());
  const gauge = group.gauge({
    name: START_TIME,
    help: 'Start time of the process since unix epoch in seconds.',
    aggregator: 'omit',
  });
  group.collectTogether([gauge], () => gauge.set(group.labels, startTime));
});

module.exports = processStartTime;
module.exports.metricNames = [START_TIME];
