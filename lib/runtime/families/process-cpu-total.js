'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { activeTrace } = require('../../metric/active-trace');

/** @typedef {import('../../metric/counter').Counter} Counter */

const HELPS = {
  process_cpu_user_seconds_total: 'Total user CPU time spent in seconds.',
  process_cpu_system_seconds_total: 'Total system CPU time spent in seconds.',
  process_cpu_seconds_total: 'Total user and system CPU time spent in seconds.',
};

const MICROSECONDS = 1e6;

/**
 * CPU time of the process, all threads, since this call.
 *
 * @throws {TypeError} if exemplars are enabled and the registry writes Prometheus text
 */
module.exports = defineProcessFamily(HELPS, (group, config) => {
  const enableExemplars = Boolean(config.enableExemplars);
  const counters = group.names.map(name => group.counter(name, { enableExemplars }));
  const [user, system, total] = counters;
  const { labels } = group;
  const add = (/** @type {Counter} */ counter, /** @type {number} */ value) => {
    const { traceId, spanId } = (enableExemplars && activeTrace()) || {};
    if (traceId === undefined) counter.inc(labels, value);
    else counter.inc({ labels, value, exemplarLabels: { traceId, spanId } });
  };
  let last = process.cpuUsage();
  group.collectTogether(counters, () => {
    const usage = process.cpuUsage();
    // Never negative: the counter would throw, and fail the scrape. The kernel scales the split of the
    // total into user and system time, so one of them may fall a little.
    const userTime = Math.max(0, usage.user - last.user);
    const systemTime = Math.max(0, usage.system - last.system);
    last = usage;
    add(user, userTime / MICROSECONDS);
    add(system, systemTime / MICROSECONDS);
    add(total, (userTime + systemTime) / MICROSECONDS);
  });
});
module.exports.metricNames = Object.keys(HELPS);
