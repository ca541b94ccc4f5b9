'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');
const { findMemoryFiles, findCpuFiles } = require('../sources/cgroup-files');

const MEMORY_LIMIT = 'process_cgroup_memory_limit_bytes';
const MEMORY_USAGE = 'process_cgroup_memory_usage_bytes';
const CPU_QUOTA = 'process_cgroup_cpu_quota_cores';
const CPU_THROTTLED = 'process_cgroup_cpu_throttled_seconds_total';
const CPU_PERIODS = 'process_cgroup_cpu_periods_total';
const CPU_THROTTLED_PERIODS = 'process_cgroup_cpu_throttled_periods_total';

const HELPS = {
  [MEMORY_LIMIT]: 'Memory limit of the cgroup in bytes; absent if unlimited.',
  [MEMORY_USAGE]: 'Memory used by the cgroup in bytes, including the page cache.',
  [CPU_QUOTA]: 'CPU quota of the cgroup in cores; absent if unlimited.',
  [CPU_THROTTLED]: 'Time in seconds that the cgroup was throttled by its CPU quota, summed over all CPUs.',
  [CPU_PERIODS]: 'Enforcement periods of the CPU quota in which the cgroup was runnable.',
  [CPU_THROTTLED_PERIODS]: 'Enforcement periods of the CPU quota in which the cgroup was throttled.',
};

// The workers share a cgroup, and each reads the figures of all: their sum would be a multiple.
const OPTIONS = { aggregator: 'max' };

/** @typedef {import('../../metric/gauge').Gauge} Gauge */
/** @typedef {import('../sampling/metric-group').MetricGroup} MetricGroup */

/**
 * Limits and usage of the process's cgroup, which usually is the container: memory, CPU quota and throttling.
 * Only on systems with cgroups.
 */
module.exports = defineProcessFamily(HELPS, (group, config, places) => {
  const memory = findMemoryFiles(places);
  const cpu = findCpuFiles(places);
  if (memory === undefined && cpu === undefined) return false;
  if (memory !== undefined) addMemory(group, memory);
  if (cpu !== undefined) addCpu(group, cpu);
});
module.exports.metricNames = Object.keys(HELPS);

/**
 * @param {MetricGroup} group
 * @param {import('../sources/cgroup-files').MemoryFiles} files
 */
function addMemory(group, files) {
  const limit = group.gauge(MEMORY_LIMIT, OPTIONS);
  const usage = group.gauge(MEMORY_USAGE, OPTIONS);
  const sample = () => {
    setOrRemove(limit, group.labels, files.limit());
    setOrRemove(usage, group.labels, files.usage());
  };
  // Set before the first scrape: the zero of a new gauge would be a limit.
  sample();
  group.collectLater([limit, usage], sample);
}

/**
 * @param {MetricGroup} group
 * @param {import('../sources/cgroup-files').CpuFiles} files
 */
function addCpu(group, files) {
  const quota = group.gauge(CPU_QUOTA, OPTIONS);
  const throttled = group.counter(CPU_THROTTLED, OPTIONS);
  const periods = group.counter(CPU_PERIODS, OPTIONS);
  const throttledPeriods = group.counter(CPU_THROTTLED_PERIODS, OPTIONS);
  const followThrottled = followTotal(throttled, group.labels);
  const followPeriods = followTotal(periods, group.labels);
  const followThrottledPeriods = followTotal(throttledPeriods, group.labels);
  setOrRemove(quota, group.labels, files.quota());
  group.collectLater([quota, throttled, periods, throttledPeriods], () => {
    setOrRemove(quota, group.labels, files.quota());
    const throttling = files.throttling();
    if (throttling === undefined) return;
    followThrottled(throttling.seconds);
    followPeriods(throttling.periods);
    followThrottledPeriods(throttling.throttledPeriods);
  });
}

/**
 * @param {Gauge} gauge
 * @param {Record<string, string | number>} labels
 * @param {number | undefined} value
 */
function setOrRemove(gauge, labels, value) {
  if (value === undefined) gauge.remove(labels);
  else gauge.set(labels, value);
}
