'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');

const ACTIVE = 'nodejs_eventloop_active_seconds_total';
const IDLE = 'nodejs_eventloop_idle_seconds_total';

const MILLISECONDS = 1e3;

/**
 * Seconds that the event loop was active and idle since it started. Counters can be added up over processes;
 * the active share of both is the loop's utilisation. In a worker thread: of that thread's loop.
 */
const eventLoopUtilization = defineFamily(group => {
  const { performance } = require('perf_hooks');
  if (typeof performance?.eventLoopUtilization !== 'function') return false;
  const active = group.counter({
    name: ACTIVE,
    help: 'Time in seconds that the event loop spent running callbacks.',
  });
  const idle = group.counter({
    name: IDLE,
    help: 'Time in seconds that the event loop spent waiting for events.',
  });
  const followActive = followTotal(active, group.labels);
  const followIdle = followTotal(idle, group.labels);
  group.collectLater([active, idle], () => {
    // Both are zero until the loop starts, after the main script.
    const utilization = performance.eventLoopUtilization();
    followActive(utilization.active / MILLISECONDS);
    followIdle(utilization.idle / MILLISECONDS);
  });
});

module.exports = eventLoopUtilization;
module.exports.metricNames = [ACTIVE, IDLE];
