'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');

const START_TIME = 'process_start_time_seconds';

/** Start time of the process. */
module.exports = defineProcessFamily(
  { [START_TIME]: 'Start time of the process since unix epoch in seconds.' },
  group => {
    // Computed once: a later correction of the system's clock must not move it.
    const startTime = Math.round(Date.now() / 1000 - process.uptime());
    const gauge = group.gauge(START_TIME, { aggregator: 'omit' });
    group.collectTogether([gauge], () => gauge.set(group.labels, startTime));
  },
);
module.exports.metricNames = [START_TIME];
