'use strict';

// The values of default metrics: complete, of this scrape, and on runtimes that lack an interface.

const assert = require('node:assert');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const { once } = require('node:events');
const perfHooks = require('node:perf_hooks');
const { describe, it, mock, beforeEach, afterEach } = require('node:test');
const { setImmediate: loopTurn } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { collectGarbage, holdUpLoop, replace, turnUntil } = require('./fixtures/default-metrics-runtime');

let register;
let stop;

beforeEach(() => {
  register = new Registry();
  stop = () => {};
});

afterEach(() => stop());

function collect(config) {
  stop = collectDefaultMetrics({ ...config, register });
}

async function valueOf(name, labels = {}) {
  const { values } = await register.getSingleMetric(name).get();
  return values.find(sample => Object.keys(labels).every(label => sample.labels[label] === labels[label]))
    ?.value;
}

function names() {
  return register.getMetricsAsArray().map(({ name }) => name);
}

describe('nodejs_gc_duration_seconds', () => {
  async function countOf(kind) {
    const { values } = await register.getSingleMetric('nodejs_gc_duration_seconds').get();
    return values.find(({ metricName, labels }) => /_count$/.test(metricName) && labels.kind === kind)?.value;
  }

  it('nodejs_gc_duration_seconds has a collection in the next scrape, with its duration', async () => {
    collect();
    collectGarbage();
    const text = await register.metrics();
    assert.match(text, /^nodejs_gc_duration_seconds_count\{kind="major"\} [1-9]\d*$/m);
    const [, sum] = /^nodejs_gc_duration_seconds_sum\{kind="major"\} (\S+)$/m.exec(text);
    assert.ok(sum > 0, `${sum} s`);
  });

  it('nodejs_gc_duration_seconds counts before the first scrape, and up to the stop', async () => {
    collect();
    collectGarbage();
    await loopTurn();
    stop();
    const counted = await countOf('major');
    assert.ok(counted >= 1);
    collectGarbage();
    await loopTurn();
    assert.strictEqual(await countOf('major'), counted);
  });
});

describe('nodejs_eventloop_lag_seconds', () => {
  const STATISTICS = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
    statistic => `nodejs_eventloop_lag_${statistic}_seconds`,
  );

  it('nodejs_eventloop_lag_seconds keeps its statistics until something is measured again', async t => {
    const delays = { count: 0, min: 2 ** 63, max: 0, mean: NaN, stddev: NaN };
    const fields = { enable() {}, disable() {}, percentile: rank => rank * 1e6 };
    const monitor = {
      ...fields,
      ...delays,
      reset() {
        Object.assign(monitor, delays);
      },
    };
    replace(t, perfHooks, 'monitorEventLoopDelay', () => monitor);
    collect();
    const lags = () => Promise.all(STATISTICS.map(name => valueOf(name)));
    assert.deepStrictEqual(await lags(), [0, 0, 0, 0, 0, 0, 0]);
    Object.assign(monitor, { count: 3, min: 1e7, max: 4e9, mean: 2e9, stddev: 1e6 });
    const expected = [0.01, 4, 2, 0.001, 0.05, 0.09, 0.099];
    assert.deepStrictEqual(await lags(), expected);
    assert.strictEqual(monitor.count, 0, 'each scrape shows the time since the last one');
    assert.deepStrictEqual(await lags(), expected);
    Object.assign(monitor, { count: 1, min: 2e7, max: 2e7, mean: 2e7, stddev: 0 });
    assert.deepStrictEqual((await lags()).slice(0, 4), [0.02, 0.02, 0.02, 0]);
  });

  it('nodejs_eventloop_lag_seconds has the longest delay of a blocked loop', async () => {
    collect();
    await turnUntil(async () => {
      // More than once: the runtime's monitor does not record the first delay after a scrape.
      holdUpLoop(60);
      return (await valueOf('nodejs_eventloop_lag_max_seconds')) > 0.05;
    });
  });

  it('nodejs_eventloop_lag_seconds is the lag of this scrape, not of the last one', async t => {
    const { hrtime } = process;
    let seconds = 0;
    const clock = start => [seconds - (start?.[0] ?? 0), 0];
    replace(t, process, 'hrtime', Object.assign(clock, { bigint: hrtime.bigint }));
    collect();
    setImmediate(() => (seconds += 50));
    assert.strictEqual(await valueOf('nodejs_eventloop_lag_seconds'), 50);
    assert.strictEqual(await valueOf('nodejs_eventloop_lag_seconds'), 0);
  });

  it('nodejs_eventloop_lag_seconds does not count its own immediate as an active resource', async () => {
    collect();
    for (let i = 0; i < 3; i++) {
      const active = process.getActiveResourcesInfo().length;
      const text = await register.metrics();
      assert.ok(text.includes(`\nnodejs_active_resources_total ${active}\n`));
    }
  });
});

it('metrics() ends although fake timers never fire', async t => {
  collect();
  mock.timers.enable({ apis: ['setImmediate', 'setTimeout', 'setInterval', 'Date'] });
  t.after(() => mock.timers.reset());
  assert.match(await register.metrics(), /^nodejs_eventloop_lag_seconds \d/m);
});

describe('a family of default metrics', () => {
  it('a family of default metrics is sampled once per scrape, although fake timers replace queueMicrotask()', async t => {
    collect();
    replace(t, globalThis, 'queueMicrotask', () => {});
    const calls = t.mock.method(process, 'cpuUsage').mock;
    await register.metrics();
    assert.strictEqual(calls.callCount(), 1);
    await register.getMetricsAsJSON();
    assert.strictEqual(calls.callCount(), 2);
  });

  it('a family of default metrics has values if only one of its metrics is read', async t => {
    collect();
    replace(t, process, 'memoryUsage', () => ({ rss: 4e6, heapTotal: 3e6, heapUsed: 2e6, external: 1e6 }));
    assert.match(
      await register.getSingleMetricAsString('nodejs_heap_size_used_bytes'),
      /^nodejs_heap_size_used_bytes 2000000$/m,
    );
    for (const name of ['process_virtual_memory_bytes', 'process_heap_bytes', 'process_cpu_seconds_total']) {
      assert.match(await register.getSingleMetricAsString(name), / [\d.e-]*[1-9][\d.e-]*$/, name);
    }
    assert.ok((await valueOf('nodejs_heap_space_size_used_bytes', { space: 'old' })) > 0);
    assert.ok((await valueOf('nodejs_heap_space_size_available_bytes', { space: 'new' })) > 0);
  });

  it('a family of default metrics has values again after resetMetrics()', async () => {
    collect({ labels: { app: 'shop' } });
    await register.metrics();
    register.resetMetrics();
    const text = await register.metrics();
    assert.match(text, /^nodejs_version_info\{.*\} 1$/m);
    assert.match(text, /^process_start_time_seconds\{app="shop"\} [1-9]\d+$/m);
    assert.match(text, /^process_max_fds\{app="shop"\} [1-9]\d*$/m);
  });
});

describe('process_cpu_seconds_total', () => {
  it('process_cpu_seconds_total counts from the call on, user and system and both', async t => {
    let usage = { user: 5e6, system: 1e6 };
    replace(t, process, 'cpuUsage', () => usage);
    collect();
    const values = () =>
      Promise.all(['user_', 'system_', ''].map(part => valueOf(`process_cpu_${part}seconds_total`)));
    assert.deepStrictEqual(await values(), [0, 0, 0]);
    usage = { user: 5.5e6, system: 1.25e6 };
    assert.deepStrictEqual(await values(), [0.5, 0.25, 0.75]);
    usage = { user: 6.5e6, system: 1.25e6 };
    assert.deepStrictEqual(await values(), [1.5, 0.25, 1.75]);
  });

  it('process_cpu_seconds_total ignores CPU time that the kernel takes back', async t => {
    let usage = { user: 5e6, system: 1e6 };
    replace(t, process, 'cpuUsage', () => usage);
    collect();
    usage = { user: 4.5e6, system: 2e6 };
    await register.metrics();
    assert.strictEqual(await valueOf('process_cpu_user_seconds_total'), 0);
    assert.strictEqual(await valueOf('process_cpu_seconds_total'), 1);
  });
});

describe('nodejs_active_handles and nodejs_active_requests', () => {
  it('nodejs_active_handles and nodejs_active_requests count by class, and drop a class without active objects', async () => {
    collect();
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const total = await valueOf('nodejs_active_handles_total');
    assert.strictEqual(await valueOf('nodejs_active_handles', { type: 'Server' }), 1);
    server.close();
    await once(server, 'close');
    // Node.js emits 'close' before libuv has removed the handle.
    await turnUntil(async () => (await valueOf('nodejs_active_handles', { type: 'Server' })) === undefined);
    assert.strictEqual(await valueOf('nodejs_active_handles_total'), total - 1);
  });

  it('nodejs_active_handles and nodejs_active_requests count objects without a class', async t => {
    collect();
    replace(t, process, '_getActiveRequests', () => [Object.create(null), new (class FSReqCallback {})()]);
    const { values } = await register.getSingleMetric('nodejs_active_requests').get();
    const shown = values.map(({ labels, value }) => [labels.type, value]);
    assert.deepStrictEqual(shown, [
      ['Object', 1],
      ['FSReqCallback', 1],
    ]);
    assert.strictEqual(await valueOf('nodejs_active_requests_total'), 2);
  });
});

describe('process_open_fds', { skip: process.platform !== 'linux' }, () => {
  /** How many more are counted while three files are open. */
  async function rise() {
    const before = await valueOf('process_open_fds');
    const opened = [1, 2, 3].map(() => fs.openSync('/dev/null'));
    const difference = (await valueOf('process_open_fds')) - before;
    for (const fd of opened) fs.closeSync(fd);
    return difference;
  }

  it('process_open_fds counts open files', async () => {
    collect();
    assert.strictEqual(await rise(), 3);
  });

  it('process_open_fds counts open files on kernels that do not report the size of /proc/self/fd', async t => {
    const { statSync } = fs;
    replace(t, fs, 'statSync', (file, options) => {
      const stats = statSync(file, options);
      if (file === '/proc/self/fd') stats.size = 0;
      return stats;
    });
    collect();
    assert.strictEqual(await valueOf('process_open_fds'), fs.readdirSync('/proc/self/fd').length - 1);
    assert.strictEqual(await rise(), 3);
  });

  it('process_open_fds keeps its last value when descriptors cannot be counted', async t => {
    collect();
    const before = await valueOf('process_open_fds');
    const fail = () => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    };
    for (const name of ['readdirSync', 'readFileSync', 'statSync']) replace(t, fs, name, fail);
    replace(t, process, 'memoryUsage', fail);
    await register.metrics();
    assert.strictEqual(await valueOf('process_open_fds'), before);
  });
});

describe('collectDefaultMetrics()', () => {
  it('collectDefaultMetrics() has only the resident size, from Node.js, and no descriptors on other systems', async t => {
    replace(t, process, 'platform', 'darwin');
    replace(t, process, 'memoryUsage', () => ({ rss: 4e6, heapTotal: 3e6, heapUsed: 2e6, external: 1e6 }));
    collect();
    assert.strictEqual(await valueOf('process_resident_memory_bytes'), 4e6);
    assert.deepStrictEqual(
      names().filter(name => /^process_(?!cpu)/.test(name)),
      // The limit is read on any system with /proc, as prom-client does.
      ['process_start_time_seconds', 'process_resident_memory_bytes', 'process_max_fds'],
    );
  });

  it('collectDefaultMetrics() has only the resident size and no descriptors without /proc', t => {
    replace(t, fs, 'readFileSync', file => {
      throw Object.assign(new Error(`no such file: ${file}`), { code: 'ENOENT' });
    });
    replace(t, fs, 'existsSync', () => false);
    collect();
    const shown = names().filter(name => /^process_(?!cpu)/.test(name));
    assert.deepStrictEqual(shown, ['process_start_time_seconds', 'process_resident_memory_bytes']);
  });

  it('collectDefaultMetrics() has everything except lag on a runtime without monitorEventLoopDelay(), or where it throws', async t => {
    const notImplemented = () => {
      throw Object.assign(new Error('not implemented'), { code: 'ERR_NOT_IMPLEMENTED' });
    };
    replace(t, perfHooks, 'monitorEventLoopDelay', undefined);
    for (const monitorEventLoopDelay of [undefined, notImplemented]) {
      perfHooks.monitorEventLoopDelay = monitorEventLoopDelay;
      register.clear();
      collect();
      assert.ok(!names().some(name => name.includes('lag')));
      assert.match(await register.metrics(), /^nodejs_version_info/m);
    }
  });

  it('a page has all other metrics where the list of active objects cannot be read', async t => {
    const unreadable = Object.defineProperty({}, 'constructor', { get: () => assert.fail('no constructor') });
    replace(t, process, '_getActiveHandles', () => [unreadable]);
    collect();
    assert.match(await register.metrics(), /^nodejs_version_info/m);
  });

  it('collectDefaultMetrics() omits active objects and collections on a runtime that does not report them', async t => {
    for (const name of ['getActiveResourcesInfo', '_getActiveHandles', '_getActiveRequests']) {
      replace(t, process, name, undefined);
    }
    const noneReported = class {
      static supportedEntryTypes = ['mark'];
    };
    replace(t, perfHooks, 'PerformanceObserver', noneReported);
    collect({ runtime: true });
    const shown = names().filter(name => /_active_(resources|handles|requests)|_gc_/.test(name));
    assert.deepStrictEqual(shown, []);
    assert.match(await register.metrics(), /^nodejs_version_info/m);
  });

  it('collectDefaultMetrics() has all metrics in a worker thread, which can end', async () => {
    const thread = new Worker(path.join(__dirname, 'fixtures/default-metrics-thread.js'));
    const [[metrics], [exitCode]] = await Promise.all([once(thread, 'message'), once(thread, 'exit')]);
    collect();
    assert.strictEqual(exitCode, 0);
    const shown = metrics.map(({ name }) => name);
    assert.deepStrictEqual(shown, names());
    const { values } = metrics.find(({ name }) => name === 'nodejs_heap_size_used_bytes');
    assert.ok(values[0].value > 1e5);
  });
});
