'use strict';

const { inspect } = require('util');
const { Registry } = require('../registry/registry');

// Together with the library, before anybody replaces the timers that it takes for itself.
require('./sampling/loop-turn');

/** @typedef {import('./sampling/metric-group').MetricGroup} MetricGroup */
/** @typedef {(registry?: Registry, config?: any) => MetricGroup | undefined} Family */

/**
 * The families in order of their output, by prom-client's names. Each is loaded when the first call needs it: whoever
 * only wants a counter does not pay for them.
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
 * What `runtime` adds on request, in order of output. Loaded like the others, when it is wanted.
 *
 * @type {Record<string, () => Family>}
 */
const RUNTIME_FAMILIES = {
  gc: () => require('./families/gc-totals'),
  heap: () => require('./families/heap-limits'),
  memory: () => require('./families/memory-beside-heap'),
  eventLoopUtilization: () => require('./families/event-loop-utilization'),
  eventLoopDelay: () => require('./families/event-loop-delay'),
  process: () => require('./families/process-usage'),
  cgroup: () => require('./families/cgroup'),
};

/**
 * Options that are not listed are ignored; null and undefined stand for the default.
 *
 * @typedef {object} DefaultMetricsConfig
 * @property {Registry | null} [register] default: the global registry
 * @property {string | null} [prefix] in front of every metric's name
 * @property {Record<string, string | number> | null} [labels] added to every sample
 * @property {readonly number[] | null} [gcDurationBuckets] upper bounds in seconds, default [0.001, 0.01, 0.1, 1, 2, 5]
 * @property {number | null} [eventLoopMonitoringPrecision] milliseconds between two samples of the event loop's delay,
 *   default 10; of the family `eventLoopDelay` 20
 * @property {boolean | null} [enableExemplars] whether the CPU counters point to the trace that is active when they are
 *   read (OpenTelemetry's `traceId` and `spanId`); for OpenMetrics registries
 * @property {boolean | readonly string[] | null} [runtime] metrics beside those of prom-client: true for all, or the
 *   names of families (`runtimeMetricsList`); default none. docs/runtime-metrics.md
 * @property {readonly number[] | null} [eventLoopDelayBuckets] upper bounds in seconds that rise, of the family
 *   `eventLoopDelay`, default 0.001 to 10
 */

/**
 * Registers metrics of the process and of Node.js: CPU, memory, file descriptors, event loop, heap, garbage
 * collection. They are sampled when they are read. Two observers run meanwhile, of the event loop's delay and of
 * garbage collections; they keep no process alive, and end with the call's metrics: at register.clear(), or when the
 * registry itself is garbage.
 *
 * @param {DefaultMetricsConfig | null} [config]
 * @returns {() => void} stops: from then on nothing runs and no default metric changes. Their last values stand until
 *   the registry is cleared, or this function is called for it again.
 * @throws {TypeError} where config is something else, `runtime` names a family that there is not, or a registry cannot
 *   write the exemplars that are asked for
 * @throws {Error} where a metric of one of the names is registered. Nothing was done then, as with every other error.
 */
function collectDefaultMetrics(config) {
  if (config != null && typeof config !== 'object') {
    throw new TypeError('config must be null, undefined, or an object');
  }
  const options = config ?? {};
  const registry = options.register ?? Registry.globalRegistry;
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
    throw error;
  }
  return () => {
    for (const group of groups) group.stop();
  };
}

/**
 * @param {unknown} runtime the option
 * @returns {(() => Family)[]} in order of output, whatever the order of the names
 * @throws {TypeError} where it is neither a boolean nor an array, or one of the names is none
 */
function runtimeFamilies(runtime) {
  if (runtime == null || runtime === false) return [];
  if (runtime === true) return Object.values(RUNTIME_FAMILIES);
  const known = Object.keys(RUNTIME_FAMILIES);
  const isKnown = (/** @type {unknown} */ name) => known.includes(/** @type {string} */ (name));
  if (!Array.isArray(runtime) || !runtime.every(isKnown)) {
    throw new TypeError(`runtime must be a boolean or an array of ${known.join(', ')}: ${inspect(runtime)}`);
  }
  return known.filter(name => runtime.includes(name)).map(name => RUNTIME_FAMILIES[name]);
}

/** The names of the families, in order of their output. */
collectDefaultMetrics.metricsList = Object.keys(FAMILIES);

/** The names that `runtime` takes, in order of output. */
collectDefaultMetrics.runtimeMetricsList = Object.keys(RUNTIME_FAMILIES);

module.exports = collectDefaultMetrics;
