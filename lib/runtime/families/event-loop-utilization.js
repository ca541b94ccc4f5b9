'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');

const HELPS = {
  nodejs_eventloop_active_seconds_total: 'Time in seconds that the event loop spent running callbacks.',
  nodejs_eventloop_idle_seconds_total: 'Time in seconds that the event loop spent waiting for events.',
};

const MILLISECONDS = 1e3;

/**
 * Seconds that the event loop was active and idle since it started. Counters can be added up over processes;
 * the active share of both is the loop's utilisation. In a worker thread: of that thread's loop.
 */
module.exports = defineFamily(HELPS, group => {
  const { performance } = require('perf_hooks');
  if (typeof performance?.eventLoopUtilization !== 'function') return false;
  const counters = group.names.map(name => group.counter(name));
  const [followActive, followIdle] = counters.map(counter => followTotal(counter, group.labels));
  group.collectLater(counters, () => {
    // Both are zero until the loop starts, after the main script.
    const { active, idle } = performance.eventLoopUtilization();
    followActive(active / MILLISECONDS);
    followIdle(idle / MILLISECONDS);
  });
});
