'use strict';

// Loading the library has no effect on a process beyond the loaded modules: no listener, timer, global or
// file.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const vm = require('node:vm');
const { run } = require('./fixtures/drop-in-package');

const ROOT = path.join(__dirname, '../..');
const PROBE = path.join(__dirname, 'fixtures/loading-probe.js');
const THREAD = path.join(__dirname, 'fixtures/loading-thread.js');
const CLUSTER = path.join(__dirname, 'fixtures/loading-cluster.js');
const PATIENT_JEST = path.join(__dirname, 'fixtures/patient-jest.js');
// Only a test that fails anyway waits this long.
const PATIENCE = 600_000;

/** Built-in modules that are loaded with the library. */
const BUILT_IN = ['diagnostics_channel'];
/** @type {string[]} packages that are loaded with the library */
const PACKAGES = [];
/**
 * Loaded at first use: by a cluster's primary, a worker's first capture, a push, the first default metric.
 */
const LATER = [
  'child_process',
  'crypto',
  'dgram',
  'http',
  'https',
  'inspector',
  'net',
  'os',
  'perf_hooks',
  'stream',
  'tls',
  'v8',
  'worker_threads',
  'zlib',
];

const UNTOUCHED = { listeners: {}, replaced: [], globals: [], asynchronous: [], environment: 'as it was' };

/** @type {string} */
let place;

before(() => {
  place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'loading-test-'));
});

after(() => fs.rmSync(place, { recursive: true, force: true }));

/**
 * Runs a program until it ends by itself.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<any>} the JSON that it prints
 */
async function probe(file, args, { stdio = ['ignore', 'pipe', 'pipe'], env } = {}) {
  const child = spawn(process.execPath, [file, ...args], {
    stdio,
    env: { ...process.env, TMPDIR: place, NODE_OPTIONS: '', ...env },
    timeout: PATIENCE,
    killSignal: 'SIGKILL',
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', text => (output += text));
  child.stderr.setEncoding('utf8').on('data', text => (errors += text));
  const { code, signal } = await new Promise(resolve => {
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  assert.deepStrictEqual(
    { code, signal, errors },
    { code: 0, signal: null, errors: '' },
    'it did not end by itself',
  );
  return JSON.parse(output);
}

/** Asserts that only modules were loaded, and no others than expected. */
function assertUntouched({ builtIn, files, ...rest }, { alsoBuiltIn = [], ...exceptions } = {}) {
  assert.deepStrictEqual(rest, { ...UNTOUCHED, ...exceptions });
  const shown = builtIn.filter(name => !BUILT_IN.includes(name) && !alsoBuiltIn.includes(name));
  assert.deepStrictEqual(shown, []);
  assert.ok(files.includes('index.js') && files.includes('lib/registry/registry.js'));
  assert.deepStrictEqual(packagesOf(files), PACKAGES);
  assert.deepStrictEqual(fs.readdirSync(place), [], 'a file was made');
}

/** @param {string[]} files relative to the repository */
function packagesOf(files) {
  const names = files.map(file => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  return [...new Set(names.filter(name => name !== undefined))].sort();
}

/** A second copy of the package. */
function secondCopy() {
  const copy = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'loading-copy-'));
  after(() => fs.rmSync(copy, { recursive: true, force: true }));
  for (const name of ['index.js', 'package.json', 'lib']) {
    fs.cpSync(path.join(ROOT, name), path.join(copy, name), { recursive: true });
  }
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'), 'junction');
  return copy;
}

describe('loading the library', () => {
  it('a plain process: loading changes no global state, and the process ends by itself', async t => {
    const traces = await probe(PROBE, [ROOT]);
    assertUntouched(traces);
    t.diagnostic(`built in: ${traces.builtIn.join(', ')}`);
    t.diagnostic(`${traces.files.length} files: ${traces.files.join(', ')}`);
  });

  it('built-in modules and files of a cluster are loaded at first use', async () => {
    const { builtIn, files } = await probe(PROBE, [ROOT]);
    const shown = LATER.concat('cluster').filter(name => builtIn.includes(name));
    assert.deepStrictEqual(shown, []);
    // Of the cluster: the listener of a worker, and the class of the primary.
    assert.deepStrictEqual(files.filter(file => /^lib\/(cluster|runtime)\//.test(file)).sort(), [
      'lib/cluster/aggregate-json.js',
      'lib/cluster/aggregator-registry.js',
      'lib/cluster/cluster-options.js',
      'lib/cluster/group-of-process.js',
      'lib/cluster/own-page.js',
      'lib/cluster/package-copies.js',
      'lib/cluster/primary-of-process.js',
      'lib/cluster/primary/json-aggregators.js',
      'lib/cluster/wire/messages.js',
      'lib/cluster/worker/worker-hook.js',
      'lib/runtime/default-metrics.js',
    ]);
  });

  it('a plain fork: loading changes no global state, and the process ends although the IPC channel is open', async () => {
    // The process has an IPC channel, so `cluster` is loaded to see if it is a cluster worker.
    const stdio = ['ignore', 'pipe', 'pipe', 'ipc'];
    const traces = await probe(PROBE, [ROOT], { stdio });
    assertUntouched(traces, { alsoBuiltIn: traces.builtIn });
    assert.ok(traces.builtIn.includes('cluster'));
    for (const name of ['worker_threads', 'inspector', 'perf_hooks', 'v8', 'http', 'crypto', 'zlib']) {
      assert.ok(!traces.builtIn.includes(name), name);
    }
  });

  it('a cluster worker: loading adds one "message" and two "exit" listeners, and the worker ends when it is disconnected', async () => {
    const traces = await probe(CLUSTER, [ROOT]);
    assertUntouched(traces, {
      listeners: { 'process message': 1, 'process exit': 2 },
      globals: ['Symbol(prom-client-cluster.state.v1)'],
      // Node.js itself uses process.nextTick() when a 'message' listener is added.
      asynchronous: traces.asynchronous.filter(type => type === 'TickObject'),
    });
  });

  it('a cluster worker with two copies of the package has no more listeners', async () => {
    const traces = await probe(CLUSTER, [ROOT, secondCopy()]);
    assert.deepStrictEqual(traces.listeners, { 'process message': 1, 'process exit': 2 });
    assert.strictEqual(traces.files.filter(file => file.endsWith('lib/registry/registry.js')).length, 2);
  });

  it('a worker thread: loading changes no global state, and the thread ends by itself', async () => {
    assertUntouched(await probe(THREAD, [ROOT]));
  });
});

describe('under Jest', () => {
  /**
   * Runs tests that load the library.
   *
   * @param {string} code of each of two test files
   * @param {string[]} args
   * @returns {Promise<string>} the output of Jest
   */
  async function jest(code, args) {
    const project = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'loading-jest-'));
    after(() => fs.rmSync(project, { recursive: true, force: true }));
    fs.mkdirSync(path.join(project, 'node_modules'));
    fs.symlinkSync(ROOT, path.join(project, 'node_modules/prom-client'), 'junction');
    fs.writeFileSync(path.join(project, 'package.json'), '{"jest": {"testEnvironment": "node"}}');
    for (const name of ['one', 'two']) fs.writeFileSync(path.join(project, `${name}.test.js`), code);
    const bin = path.join(__dirname, 'programs/node_modules/jest/bin/jest.js');
    // By default, Jest complains about a process that has not ended after a second.
    const options = ['--ci', '--no-cache', '--watchman=false', `--openHandlesTimeout=${PATIENCE / 2}`];
    const command = ['--require', PATIENT_JEST, bin, ...options, ...args];
    const env = { NODE_OPTIONS: '', NODE_ENV: 'test' };
    const { stdout, stderr } = await run(process.execPath, command, { cwd: project, env });
    return stdout + stderr;
  }

  const TEST = `
    const client = require('prom-client');
    const listeners = () => process.eventNames().map(name => [String(name), process.listenerCount(name)]);

    test('the library works under Jest', async () => {
      const counter = new client.Counter({ name: 'c', help: 'h' });
      counter.inc();
      expect(await client.register.metrics()).toContain('c 1');
      client.register.clear();
    });

    test('the library loads again and again under Jest without leaving anything', () => {
      const before = listeners();
      for (let i = 0; i < 3; i++) {
        jest.resetModules();
        const again = require('prom-client');
        expect(again.register).not.toBe(client.register);
        new again.AggregatorRegistry();
      }
      expect(listeners()).toEqual(before);
    });

    test('the library measures time under Jest with fake timers', () => {
      jest.useFakeTimers();
      const histogram = new client.Histogram({ name: 'h', help: 'h' });
      const end = histogram.startTimer();
      jest.advanceTimersByTime(2500);
      expect(end()).toBeCloseTo(2.5, 6);
      jest.useRealTimers();
    });`;

  it('test processes end by themselves', async () => {
    // Two workers: each is a plain fork with an IPC channel.
    const output = await jest(TEST, ['--maxWorkers=2']);
    assert.match(output, /Tests: +6 passed/);
    assert.doesNotMatch(output, /did not exit|failed to exit gracefully|force exited/);
  });

  it('no handle is left open', async () => {
    const output = await jest(TEST, ['--runInBand', '--detectOpenHandles']);
    assert.match(output, /Tests: +6 passed/);
    assert.doesNotMatch(output, /open handle|did not exit/);
  });
});

describe('files that programs use in browsers and edge runtimes', () => {
  /** The one module available: a replacement of `util`, as bundlers provide it. */
  const AVAILABLE = { util: require('node:util') };

  /**
   * Loads a file without Node.js: no `process`, no `Buffer`, and only the given built-in modules.
   *
   * @param {string} file
   * @param {Record<string, unknown>} available
   */
  function loadElsewhere(file, available = AVAILABLE) {
    const context = vm.createContext({ console });
    const loaded = new Map();
    const load = name => {
      if (loaded.has(name)) return loaded.get(name).exports;
      const module = { exports: {} };
      loaded.set(name, module);
      const wrapped = `(function (module, exports, require) {${fs.readFileSync(name, 'utf8')}\n})`;
      const require = specifier => {
        if (specifier in available) return available[specifier];
        assert.ok(/^[./]|^(tdigest|bintrees)$/.test(specifier), `${name} requires ${specifier}`);
        return load(resolve(specifier, name));
      };
      vm.runInContext(wrapped, context, { filename: name }).call(
        module.exports,
        module,
        module.exports,
        require,
      );
      return module.exports;
    };
    return load(file);
  }

  const resolve = (specifier, from) => require.resolve(specifier, { paths: [path.dirname(from)] });
  const fileOf = name => require.resolve(`prom-client-cluster/lib/${name}`);

  for (const name of [
    'registry',
    'counter',
    'gauge',
    'histogram',
    'summary',
    'bucketGenerators',
    'metricAggregators',
    'validation',
    'util',
  ]) {
    it(`lib/${name} loads without cluster, fs, v8, perf_hooks or anything else of Node.js`, () => {
      const exported = loadElsewhere(fileOf(name));
      assert.ok(exported);
    });
  }

  it('metrics can be recorded and rendered without Node.js', async () => {
    const bundle = path.join(__dirname, 'fixtures/loading-elsewhere.js');
    const { register, Counter, Gauge, Histogram, Summary } = loadElsewhere(bundle);
    new Counter({ name: 'c', help: 'h' }).inc();
    new Gauge({ name: 'g', help: 'h', labelNames: ['a'] }).set({ a: 'x' }, 2);
    new Histogram({ name: 'h', help: 'h', buckets: [1] }).observe(0.5);
    new Summary({ name: 's', help: 'h', percentiles: [0.5] }).observe(3);
    const text = await register.metrics();
    assert.match(text, /^c 1$/m);
    assert.match(text, /^g\{a="x"\} 2$/m);
    assert.match(text, /^h_bucket\{le="1"\} 1$/m);
    assert.match(text, /^s\{quantile="0\.5"\} 3$/m);
  });

  it('index.js itself needs Node.js', () => {
    assert.throws(() => loadElsewhere(path.join(ROOT, 'index.js')), /requires node:|process is not defined/);
  });
});
