'use strict';

const { inspect } = require('util');
const { Registry } = require('../registry/registry');
const { withAdvice } = require('../registry/metric-definition');
const { checkOptionNames } = require('../options/option-names');
const { invalidOption } = require('../options/coded-error');

/** @typedef {import('./sampling/metric-group').MetricGroup} MetricGroup */
/** @typedef {import('./sampling/metric-group').Family} Family */

/**
 * prom-client's families by name, in order of output. Each is loaded by the first call, so that an
 * application with counters only does not pay for it. Each has a file of its own, however small, because
 * applications import `prom-client/lib/metrics/<name>`.
 *
 * @type {Record<string, () => Family>}
 */
const FAMILIES = {
  processCpuTotal: () => require('./families/process-cpu-total'),
  processStartTime: () => require('./families/process-start-time'),
  osMemoryHeap: () => require('./families/os-memory-heap'),
  processOpenFileDescriptors: () => require('./families/process-open-file-descriptors'),
  processMaxFileDescriptors: () => require('./families/process-max-file-descriptors'),
  eventLoopLag: () => require('./families/event-loop-lag'),
  processResources: () => require('./families/process-resources'),
  processHandles: () => require('./families/process-handles'),
  processRequests: () => require('./families/process-requests'),
  heapSizeAndUsed: () => require('./families/heap-size-and-used'),
  heapSpacesSizeAndUsed: () => require('./families/heap-spaces-size-and-used'),
  version: () => require('./families/version'),
  gc: () => require('./families/gc'),
};

/**
 * The families of the option `runtime` by name, in order of output. Each is loaded by the first call that
 * asks for it.
 *
 * @type {Record<string, () => Family>}
 */
const RUNTIME_FAMILIES = {
  gc: () => require('./families/gc-totals'),
  heap: () => require('./families/heap-limits'),
  memory: () => require('./families/memory-outside-heap'),
  eventLoopUtilization: () => require('./families/event-loop-utilization'),
  eventLoopDelay: () => require('./families/event-loop-delay'),
  process: () => require('./families/process-usage'),
  cgroup: () => require('./families/cgroup'),
};

const ONCE = 'Call collectDefaultMetrics() once for each registry, or with another prefix';

const OPTIONS = new Set([
  ...['register', 'prefix', 'labels', 'gcDurationBuckets', 'eventLoopMonitoringPrecision'],
  ...['enableExemplars', 'runtime', 'eventLoopDelayBuckets'],
]);

/**
 * Other options are ignored; null and undefined mean the default.
 *
 * @typedef {object} DefaultMetricsConfig
 * @property {Registry | null} [register] default: the global registry
 * @property {string | null} [prefix] in front of every metric's name
 * @property {Record<string, string | number> | null} [labels] added to every sample
 * @property {readonly number[] | null} [gcDurationBuckets] upper bounds in seconds, default [0.001, 0.01,
 *   0.1, 1, 2, 5]
 * @property {number | null} [eventLoopMonitoringPrecision] milliseconds between two samples of the event
 *   loop's delay, default 10; for the family `eventLoopDelay` 20
 * @property {boolean | null} [enableExemplars] whether the CPU counters get an exemplar with the `traceId`
 *   and `spanId` of the OpenTelemetry span that is active at the scrape; for OpenMetrics registries
 * @property {boolean | readonly string[] | null} [runtime] further metrics: true for all, or the names of
 *   families (`runtimeMetricsList`); default none. See docs/runtime-metrics.md
 * @property {readonly number[] | null} [eventLoopDelayBuckets] upper bounds in seconds, in rising order, of
 *   the family `eventLoopDelay`; default 0.001 to 10
 */

/**
 * Registers metrics of the process and of Node.js: CPU, memory, file descriptors, event loop, heap, garbage
 * collection. They are sampled at each scrape. Two observers run between scrapes, of the event loop's delay
 * and of garbage collections. They keep no process alive, and stop at register.clear() or when the registry
 * is garbage.
 *
 * @param {DefaultMetricsConfig | null} [config]
 * @returns {() => void} stops the observers. The metrics keep their last values until the registry is cleared
 *   or collectDefaultMetrics() is called for it again.
 * @throws {TypeError} if config is not an object, `runtime` names an unknown family, or the registry cannot
 *   write exemplars although they are enabled
 * @throws {Error} if one of the metric names is taken. After any error, no metric stays registered.
 */
function collectDefaultMetrics(config) {
  if (config != null && typeof config !== 'object') {
    throw invalidOption('config must be null, undefined, or an object');
  }
  const options = config ?? {};
  checkOptionNames('collectDefaultMetrics()', options, OPTIONS);
  const registry = options.register || Registry.globalRegistry;
  const loaders = [...Object.values(FAMILIES), ...runtimeFamilies(options.runtime)];
  /** @type {MetricGroup[]} */
  const groups = [];
  try {
    for (const load of loaders) {
      const group = load()(registry, options);
      if (group !== undefined) groups.push(group);
    }
  } catch (error) {
    for (const group of groups) group.remove();
    throw withAdvice(error, ONCE);
  }
  return () => {
    for (const group of groups) group.stop();
  };
}

/**
 * @param {unknown} runtime the option `runtime`
 * @returns {(() => Family)[]} in order of output, whatever the order of the names
 * @throws {TypeError} if it is neither a boolean nor an array of names of families
 */
function runtimeFamilies(runtime) {
  if (runtime == null || runtime === false) return [];
  if (runtime === true) return Object.values(RUNTIME_FAMILIES);
  const names = Object.keys(RUNTIME_FAMILIES);
  const isFamily = (/** @type {unknown} */ name) => names.includes(/** @type {string} */ (name));
  if (!Array.isArray(runtime) || !runtime.every(isFamily)) {
    throw invalidOption(`runtime must be a boolean or an array of ${names.join(', ')}: ${inspect(runtime)}`);
  }
  return names.filter(name => runtime.includes(name)).map(name => RUNTIME_FAMILIES[name]);
}

/** The names of prom-client's families, in order of output. */
collectDefaultMetrics.metricsList = Object.keys(FAMILIES);

/** The names that the option `runtime` takes, in order of output. */
collectDefaultMetrics.runtimeMetricsList = Object.keys(RUNTIME_FAMILIES);

module.exports = collectDefaultMetrics;
