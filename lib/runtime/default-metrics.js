'use strict';

const { Registry } = require('../registry');

// Together with the library, before anybody replaces the timers that it takes for itself.
require('./loop-turn');

/** @typedef {import('./metric-group').MetricGroup} MetricGroup */
/** @typedef {(registry?: Registry, config?: any) => MetricGroup | undefined} Family */

/**
 * The families in order of their output, by prom-client's names. Each is loaded when the first call needs it: whoever
 * only wants a counter does not pay for them.
 *
 * @type {Record<string, () => Family>}
 */
const FAMILIES = {
  processCpuTotal: () => require('./process-cpu-total'),
  processStartTime: () => require('./process-start-time'),
  osMemoryHeap: () => require('./os-memory-heap'),
  processOpenFileDescriptors: () => require('./process-open-file-descriptors'),
  processMaxFileDescriptors: () => require('./process-max-file-descriptors'),
  eventLoopLag: () => require('./event-loop-lag'),
  processResources: () => require('./process-resources'),
  processHandles: () => require('./process-handles'),
  processRequests: () => require('./process-requests'),
  heapSizeAndUsed: () => require('./heap-size-and-used'),
  heapSpacesSizeAndUsed: () => require('./heap-spaces-size-and-used'),
  version: () => require('./version'),
  gc: () => require('./gc'),
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
 *   default 10
 * @property {boolean | null} [enableExemplars] whether the CPU counters point to the trace that is active when they are
 *   read (OpenTelemetry's `traceId` and `spanId`); for OpenMetrics registries
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
 * @throws {TypeError} where config is something else, or a registry cannot write the exemplars that are asked for
 * @throws {Error} where a metric of one of the names is registered. Nothing was done then, as with every other error.
 */
function collectDefaultMetrics(config) {
  if (config != null && typeof config !== 'object') {
    throw new TypeError('config must be null, undefined, or an object');
  }
  const options = config ?? {};
  const registry = options.register ?? Registry.globalRegistry;
  /** @type {MetricGroup[]} */
  const groups = [];
  try {
    for (const load of Object.values(FAMILIES)) {
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

/** The names of the families, in order of their output. */
collectDefaultMetrics.metricsList = Object.keys(FAMILIES);

module.exports = collectDefaultMetrics;
