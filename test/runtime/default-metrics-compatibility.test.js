'use strict';

// Default metrics compared with those of prom-client, in one process.

const assert = require('node:assert');
const net = require('node:net');
const path = require('node:path');
const { once } = require('node:events');
const { pathToFileURL } = require('node:url');
const { describe, it, before, after } = require('node:test');
const promClient = require('prom-client');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { collectGarbage, replace, turnUntil } = require('./fixtures/default-metrics-runtime');

const RUNTIME = path.join(__dirname, '../../lib/runtime/families');
const CONFIG_ERROR = { name: 'TypeError', message: 'config must be null, undefined, or an object' };

/** The file of a family: gc.js, os-memory-heap.js. */
function fileOf(family) {
  return path.join(RUNTIME, `${family.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}.js`);
}

/** Both libraries' default metrics, each in its own registry. */
function collectBoth(config) {
  const ours = new Registry();
  const theirs = new promClient.Registry();
  const stop = collectDefaultMetrics({ ...config, register: ours });
  promClient.collectDefaultMetrics({ ...config, register: theirs });
  return { ours, theirs, stop };
}

function outlineOf(registry) {
  return registry.getMetricsAsArray().map(({ name, help, type, aggregator, labelNames }) => {
    return { name, help, type, aggregator, labelNames };
  });
}

/** Waits until the event-loop monitor has measured something. */
async function measured(registry, prefix = '') {
  const max = registry.getSingleMetric(`${prefix}nodejs_eventloop_lag_max_seconds`);
  await turnUntil(async () => (await max.get()).values[0].value > 0);
}

async function samplesOf(registry, name) {
  const { values } = await registry.getSingleMetric(name).get();
  return values;
}

describe('default metrics compared with prom-client', () => {
  let ours, theirs, stop;

  before(async () => {
    ({ ours, theirs, stop } = collectBoth({ prefix: 'app_', labels: { app: 'shop', zone: 7 } }));
    collectGarbage();
    await measured(ours, 'app_');
    // prom-client has the lag of the previous scrape, and its observer is called some turns after a
    // collection.
    const collections = theirs.getSingleMetric('app_nodejs_gc_duration_seconds');
    await theirs.metrics();
    await turnUntil(async () =>
      (await collections.get()).values.some(({ labels }) => labels.kind === 'major'),
    );
  });

  after(() => stop());

  it('default metrics have the same metrics in the same order, with help texts, types, aggregators and label names', () => {
    assert.deepStrictEqual(outlineOf(ours), outlineOf(theirs));
    assert.strictEqual(ours.getMetricsAsArray().length, 31);
  });

  it('default metrics write the same label sets in the same order', async () => {
    // Active objects change at any moment.
    const isInstant = line => /_active_(resources|handles|requests)\{/.test(line);
    const linesOf = text =>
      text
        .split('\n')
        .filter(line => line !== '' && !line.startsWith('#') && !isInstant(line))
        .map(line => line.slice(0, line.lastIndexOf(' ')))
        // Only the major collection above is certain to have happened.
        .filter(line => !/kind="(?!major)/.test(line));
    assert.deepStrictEqual(linesOf(await ours.metrics()), linesOf(await theirs.metrics()));
  });

  it('default metrics write the type of a handle before the configured labels', async () => {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      for (const registry of [ours, theirs]) {
        const text = await registry.getSingleMetricAsString('app_nodejs_active_handles');
        assert.match(text, /^app_nodejs_active_handles\{type="Server",app="shop",zone="7"\} 1$/m);
      }
    } finally {
      server.close();
    }
  });

  /** The largest difference, as a share of the larger value. */
  const TOLERANCES = {
    process_start_time_seconds: 1e-9,
    process_resident_memory_bytes: 0.2,
    process_virtual_memory_bytes: 0.05,
    process_heap_bytes: 0.2,
    process_open_fds: 0,
    process_max_fds: 0,
    nodejs_heap_size_total_bytes: 0.3,
    nodejs_heap_size_used_bytes: 0.3,
    nodejs_external_memory_bytes: 0.3,
    nodejs_heap_space_size_total_bytes: 0.5,
    nodejs_version_info: 0,
  };

  for (const [name, tolerance] of Object.entries(TOLERANCES)) {
    it(`default metrics have prom-client's values of ${name}`, async () => {
      // A garbage collection between the two readings changes the heap: then both are read again.
      for (let attemptsLeft = 20; ; attemptsLeft--) {
        await Promise.all([ours.metrics(), theirs.metrics()]);
        const [samples, expected] = await Promise.all(
          [ours, theirs].map(registry => samplesOf(registry, `app_${name}`)),
        );
        const shown = samples.map(({ labels }) => labels);
        const wanted = expected.map(({ labels }) => labels);
        assert.deepStrictEqual(shown, wanted);
        const isNear = ({ value }, i) =>
          Math.abs(value - expected[i].value) <= tolerance * Math.max(value, expected[i].value);
        if (samples.every(isNear)) break;
        const values = list => list.map(({ value }) => value).join();
        assert.ok(attemptsLeft > 0, `${values(samples)}, not ${values(expected)}`);
      }
    });
  }
});

it("lag statistics of one monitor are prom-client's", async t => {
  // Both read the same monitor: two of them would not measure the same delays.
  const delays = { min: 1e7, max: 4e9, mean: 2e9, stddev: 1e6, count: 3 };
  const monitor = { ...delays, enable() {}, disable() {}, reset() {}, percentile: rank => rank * 1e6 };
  replace(t, require('node:perf_hooks'), 'monitorEventLoopDelay', () => monitor);
  const { ours, theirs, stop } = collectBoth({});
  const lags = async registry => {
    const json = await registry.getMetricsAsJSON();
    return json
      .filter(({ name }) => /_lag_\w+_seconds$/.test(name))
      .map(({ name, values }) => [name, values[0].value]);
  };
  const [own, expected] = [await lags(ours), await lags(theirs)];
  stop();
  assert.strictEqual(own.length, 7);
  assert.deepStrictEqual(own, expected);
});

it('metricsList has the names and the order of prom-client', () => {
  assert.deepStrictEqual(collectDefaultMetrics.metricsList, promClient.collectDefaultMetrics.metricsList);
});

for (const family of promClient.collectDefaultMetrics.metricsList) {
  it(`the family ${family} can be collected alone, as prom-client's, by default in the global registry`, async () => {
    const own = require(fileOf(family));
    const other = require(`prom-client/lib/metrics/${family}`);
    assert.deepStrictEqual(own.metricNames, other.metricNames);
    const { metricNames } = await import(pathToFileURL(require.resolve(fileOf(family))).href);
    assert.deepStrictEqual(metricNames, other.metricNames);
    const expected = new promClient.Registry();
    other(expected);
    for (const registry of [new Registry(), Registry.globalRegistry]) {
      const group = registry === Registry.globalRegistry ? own() : own(registry);
      assert.deepStrictEqual(outlineOf(registry), outlineOf(expected));
      const names = (await registry.getMetricsAsJSON()).map(({ name }) => name);
      assert.deepStrictEqual(names, own.metricNames);
      group.remove();
      assert.deepStrictEqual(registry.getMetricsAsArray(), []);
    }
  });
}

describe('the config of collectDefaultMetrics()', () => {
  it('the config of collectDefaultMetrics() has to be an object', () => {
    for (const config of [1, 'x', true, () => {}, Symbol('s'), 1n]) {
      assert.throws(() => promClient.collectDefaultMetrics(config), CONFIG_ERROR);
      assert.throws(() => collectDefaultMetrics(config), CONFIG_ERROR);
      assert.deepStrictEqual(Registry.globalRegistry.getMetricsAsArray(), []);
    }
  });

  it('the config of collectDefaultMetrics() may be absent, or have null for any option', () => {
    const nothing = { register: null, prefix: null, labels: null, enableExemplars: null };
    const numbers = { gcDurationBuckets: null, eventLoopMonitoringPrecision: null };
    for (const config of [undefined, null, {}, [], { timeout: 10_000 }, { ...nothing, ...numbers }]) {
      const stop = collectDefaultMetrics(config);
      const metrics = Registry.globalRegistry.getMetricsAsArray();
      stop();
      Registry.globalRegistry.clear();
      assert.strictEqual(metrics.length, 31);
      assert.deepStrictEqual(metrics.at(-1).buckets, [0.001, 0.01, 0.1, 1, 2, 5]);
    }
  });

  it('the config of collectDefaultMetrics() sets the buckets of garbage collections', () => {
    const register = new Registry();
    collectDefaultMetrics({ register, gcDurationBuckets: [0.5, 7] })();
    assert.deepStrictEqual(register.getSingleMetric('nodejs_gc_duration_seconds').buckets, [0.5, 7]);
  });

  it('the config of collectDefaultMetrics() sets the resolution of the event-loop monitor', t => {
    const perfHooks = require('node:perf_hooks');
    const { monitorEventLoopDelay } = perfHooks;
    const asked = [];
    replace(t, perfHooks, 'monitorEventLoopDelay', options => {
      asked.push(options.resolution);
      return monitorEventLoopDelay(options);
    });
    for (const eventLoopMonitoringPrecision of [undefined, 25]) {
      collectDefaultMetrics({ register: new Registry(), eventLoopMonitoringPrecision })();
    }
    assert.deepStrictEqual(asked, [10, 25]);
  });

  it('the config of collectDefaultMetrics() is read at the call only', async () => {
    const register = new Registry();
    const labels = { app: 'shop' };
    const stop = collectDefaultMetrics({ register, labels });
    labels.app = 'other';
    labels.zone = 'west';
    const text = await register.getSingleMetricAsString('nodejs_heap_size_used_bytes');
    stop();
    assert.match(text, /^nodejs_heap_size_used_bytes\{app="shop"\} \d+$/m);
  });

  it("the config of collectDefaultMetrics() replaces a metric's own label with a configured one of the same name", async () => {
    const { ours, theirs, stop } = collectBoth({ labels: { major: 'x' } });
    for (const registry of [ours, theirs]) {
      const [{ labels }] = await samplesOf(registry, 'nodejs_version_info');
      assert.strictEqual(labels.major, 'x');
    }
    stop();
  });

  it('the config of collectDefaultMetrics() is rejected as by prom-client, and registers nothing', () => {
    for (const [config, error] of [
      [{ prefix: '5' }, { name: 'Error', message: /^Invalid metric name/ }],
      [{ labels: { 'a-b': 1 } }, { name: 'Error', message: /^Invalid label name/ }],
      [{ enableExemplars: true }, { message: 'Exemplars are supported only on OpenMetrics registries' }],
      [{ eventLoopMonitoringPrecision: 0 }, { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }],
      [{ eventLoopMonitoringPrecision: '5' }, { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }],
    ]) {
      const [theirs, register] = [new promClient.Registry(), new Registry()];
      assert.throws(() => promClient.collectDefaultMetrics({ ...config, register: theirs }), error);
      assert.throws(() => collectDefaultMetrics({ ...config, register }), error);
      assert.deepStrictEqual(register.getMetricsAsArray(), []);
    }
  });
});
