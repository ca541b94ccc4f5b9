'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');
const { cgroupReader } = require('../sources/cgroup-files');

const HELPS = {
  process_cgroup_memory_limit_bytes: 'Memory limit of the cgroup in bytes; absent if unlimited.',
  process_cgroup_memory_usage_bytes: 'Memory used by the cgroup in bytes, including the page cache.',
  process_cgroup_cpu_quota_cores: 'CPU quota of the cgroup in cores; absent if unlimited.',
  process_cgroup_cpu_throttled_seconds_total:
    'Time in seconds that the cgroup was throttled by its CPU quota, summed over all CPUs.',
  process_cgroup_cpu_periods_total: 'Enforcement periods of the CPU quota in which the cgroup was runnable.',
  process_cgroup_cpu_throttled_periods_total:
    'Enforcement periods of the CPU quota in which the cgroup was throttled.',
};

// The workers share a cgroup, and each reads the figures of all: their sum would be a multiple.
const OPTIONS = { aggregator: 'max' };

/** @typedef {import('../sampling/metric-group').MetricGroup} MetricGroup */

/**
 * Limits and usage of the process's cgroup, which usually is the container: memory, CPU quota and throttling.
 * Only on systems with cgroups.
 */
module.exports = defineProcessFamily(HELPS, (group, config, places) => {
  let isThere = false;
  for (const controller of /** @type {const} */ (['memory', 'cpu'])) {
    const read = cgroupReader(controller, places);
    if (read === undefined) continue;
    isThere = true;
    // In the order in which their reader has them.
    const names = group.names.filter(name => name.startsWith(`process_cgroup_${controller}_`));
    const followed = names.map(name => (name.endsWith('_total') ? counter(group, name) : gauge(group, name)));
    const sample = () => {
      for (const [i, value] of read().entries()) followed[i].update(value);
    };
    // Set before the first scrape: the zero of a new gauge would be a limit.
    sample();
    group.collectLater(
      followed.map(({ metric }) => metric),
      sample,
    );
  }
  return isThere ? undefined : false;
});

/**
 * @param {MetricGroup} group
 * @param {string} name
 */
function counter(group, name) {
  const metric = group.counter(name, OPTIONS);
  return { metric, update: followTotal(metric, group.labels) };
}

/**
 * @param {MetricGroup} group
 * @param {string} name
 */
function gauge(group, name) {
  const metric = group.gauge(name, OPTIONS);
  const update = (/** @type {number} */ value) => {
    if (Number.isNaN(value)) metric.remove(group.labels);
    else metric.set(group.labels, value);
  };
  return { metric, update };
}
