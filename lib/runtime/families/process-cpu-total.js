'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');

const USER = 'process_cpu_user_seconds_total';
const SYSTEM = 'process_cpu_system_seconds_total';
const TOTAL = 'process_cpu_seconds_total';

const MICROSECONDS = 1e6;

/**
 * CPU time of the process, all threads, since this call.
 *
 * @throws {TypeError} if exemplars are enabled and the registry writes Prometheus text
 */
const processCpuTotal = defineProcessFamily((group, config) => {
  const enableExemplars = Boolean(config.enableExemplars);
  const user = group.counter({
    name: USER,
    help: 'Total user CPU time spent in seconds.',
    enableExemplars,
  });
  const system = group.counter({
    name: SYSTEM,
    help: 'Total system CPU time spent in seconds.',
    enableExemplars,
  });
  const total = group.counter({
    name: TOTAL,
    help: 'Total user and system CPU time spent in seconds.',
    enableExemplars,
  });
  const add = adder(group.labels, enableExemplars);
  let last = process.cpuUsage();
  group.collectTogether([user, system, total], () => {
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

/**
 * @param {Record<string, string | number>} labels
 * @param {boolean} enableExemplars
 * @returns {(counter: import('../../metric/counter').Counter, seconds: number) => void}
 */
function adder(labels, enableExemplars) {
  if (!enableExemplars) return (counter, seconds) => counter.inc(labels, seconds);
  const { activeTrace } = require('../sources/trace-exemplar');
  return (counter, value) => counter.inc({ labels, value, exemplarLabels: activeTrace() });
}

module.exports = processCpuTotal;
module.exports.metricNames = [USER, SYSTEM, TOTAL];
