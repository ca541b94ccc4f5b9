'use strict';

// What loading the library does to a process: nothing that anybody could notice.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const vm = require('node:vm');

const ROOT = path.join(__dirname, '../..');
const PROBE = path.join(__dirname, 'fixtures/loading-probe.js');
const THREAD = path.join(__dirname, 'fixtures/loading-thread.js');
const CLUSTER = path.join(__dirname, 'fixtures/loading-cluster.js');
// Long enough for the busiest machine: only a test that fails anyway waits for it.
const PATIENCE = 60_000;

/** Of all that Node.js has, what the library takes at once. */
const BUILT_IN = ['diagnostics_channel'];
/** Packages that are loaded at once. */
const PACKAGES = ['bintrees', 'tdigest'];
/** Loaded when something needs them: a cluster's primary, a worker that is asked, a push, the first default metric. */
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

const UNTOUCHED = {
  listeners: {},
  replaced: [],
  globals: [],
  asynchronous: [],
  environment: 'as it was',
};

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
 * @returns {Promise<any>} what it says
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

/** Asserts that nothing was touched but modules, and these in moderation. */
function assertUntouched({ builtIn, files, ...rest }, { alsoBuiltIn = [], ...exceptions } = {}) {
  assert.deepStrictEqual(rest, { ...UNTOUCHED, ...exceptions });
  assert.deepStrictEqual(
    builtIn.filter(name => !BUILT_IN.includes(name) && !alsoBuiltIn.includes(name)),
    [],
  );
  assert.ok(files.includes('index.js') && files.includes('lib/registry/registry.js'));
  assert.deepStrictEqual(packagesOf(files), PACKAGES);
  assert.deepStrictEqual(fs.readdirSync(place), [], 'a file was made');
}

/** @param {string[]} files relative to the repository */
function packagesOf(files) {
  const names = files.map(file => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  return [...new Set(names.filter(name => name !== undefined))].sort();
}

/** A copy of the package, which is loaded beside it. */
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
  it('touches nothing in a plain process, which ends by itself', async t => {
    const traces = await probe(PROBE, [ROOT]);
    assertUntouched(traces);
    t.diagnostic(`built in: ${traces.builtIn.join(', ')}`);
    t.diagnostic(`${traces.files.length} files: ${traces.files.join(', ')}`);
  });

  it('leaves for later what is needed later', async () => {
    const { builtIn, files } = await probe(PROBE, [ROOT]);
    assert.deepStrictEqual(
      LATER.concat('cluster').filter(name => builtIn.includes(name)),
      [],
    );
    // Of the cluster: what a worker needs in order to be heard, and the class of the primary.
    assert.deepStrictEqual(files.filter(file => /^lib\/(cluster|runtime)\//.test(file)).sort(), [
      'lib/cluster/aggregator-registry.js',
      'lib/cluster/package-copies.js',
      'lib/cluster/primary/json-aggregators.js',
      'lib/cluster/wire/messages.js',
      'lib/cluster/worker/worker-hook.js',
      'lib/runtime/default-metrics.js',
      'lib/runtime/sampling/loop-turn.js',
    ]);
  });

  it('touches nothing in a plain fork, which ends by itself while its parent holds the channel', async () => {
    // An IPC channel: so it is asked whether this is a cluster worker, for which `cluster` is loaded.
    const stdio = ['ignore', 'pipe', 'pipe', 'ipc'];
    const traces = await probe(PROBE, [ROOT], { stdio });
    assertUntouched(traces, { alsoBuiltIn: traces.builtIn });
    assert.ok(traces.builtIn.includes('cluster'));
    for (const name of ['worker_threads', 'inspector', 'perf_hooks', 'v8', 'http', 'crypto', 'zlib']) {
      assert.ok(!traces.builtIn.includes(name), name);
    }
  });

  it('adds one "message" and one "exit" listener in a cluster worker, which ends when it is disconnected', async () => {
    const traces = await probe(CLUSTER, [ROOT]);
    assertUntouched(traces, {
      listeners: { 'process message': 1, 'process exit': 1 },
      globals: ['Symbol(prom-client-cluster.worker.v1)'],
      // Node.js itself does something in the next tick when it sees a 'message' listener.
      asynchronous: traces.asynchronous.filter(type => type === 'TickObject'),
    });
  });

  it('adds no more listeners where two copies are loaded', async () => {
    const traces = await probe(CLUSTER, [ROOT, secondCopy()]);
    assert.deepStrictEqual(traces.listeners, { 'process message': 1, 'process exit': 1 });
    assert.strictEqual(traces.files.filter(file => file.endsWith('lib/registry/registry.js')).length, 2);
  });

  it('touches nothing in a worker thread, which ends by itself', async () => {
    assertUntouched(await probe(THREAD, [ROOT]));
  });

  it('is noticed by the probe where something does more', async () => {
    const file = path.join(place, 'meddler.js');
    fs.writeFileSync(
      file,
      `process.on('message', () => {});
       require('node:v8');
       setInterval(() => {}, 10).unref();
       globalThis.meddled = true;
       process.hrtime = () => [0, 0];
       process.env.MEDDLED = '1';`,
    );
    const traces = await probe(PROBE, [file]);
    fs.rmSync(file);
    assert.deepStrictEqual(traces.listeners, { 'process message': 1 });
    assert.deepStrictEqual(traces.replaced, ['process.hrtime']);
    assert.deepStrictEqual(traces.globals, ['meddled']);
    assert.ok(traces.builtIn.includes('v8'));
    assert.deepStrictEqual(traces.asynchronous, ['Timeout']);
    assert.strictEqual(traces.environment, 'changed');
  });
});

describe('under Jest', () => {
  /**
   * Runs tests that load the library.
   *
   * @param {string} code of each of two test files
   * @param {string[]} args
   * @returns {Promise<string>} what Jest says
   */
  async function jest(code, args) {
    const project = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'loading-jest-'));
    after(() => fs.rmSync(project, { recursive: true, force: true }));
    fs.mkdirSync(path.join(project, 'node_modules'));
    fs.symlinkSync(ROOT, path.join(project, 'node_modules/prom-client'), 'junction');
    fs.writeFileSync(path.join(project, 'package.json'), '{"jest": {"testEnvironment": "node"}}');
    for (const name of ['one', 'two']) fs.writeFileSync(path.join(project, `${name}.test.js`), code);
    const bin = path.join(ROOT, 'node_modules/jest/bin/jest.js');
    const child = spawn(process.execPath, [bin, '--ci', '--no-cache', '--watchman=false', ...args], {
      cwd: project,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', NODE_ENV: 'test' },
      timeout: PATIENCE,
      killSignal: 'SIGKILL',
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => (output += text));
    const status = await new Promise(resolve => child.on('close', (code, signal) => resolve(code ?? signal)));
    assert.strictEqual(status, 0, output);
    return output;
  }

  const TEST = `
    const client = require('prom-client');
    const listeners = () => process.eventNames().map(name => [String(name), process.listenerCount(name)]);

    test('works', async () => {
      const counter = new client.Counter({ name: 'c', help: 'h' });
      counter.inc();
      expect(await client.register.metrics()).toContain('c 1');
      client.register.clear();
    });

    test('loads again and again without leaving anything', () => {
      const before = listeners();
      for (let i = 0; i < 3; i++) {
        jest.resetModules();
        const again = require('prom-client');
        expect(again.register).not.toBe(client.register);
        new again.AggregatorRegistry();
      }
      expect(listeners()).toEqual(before);
    });

    test('measures time with fake timers', () => {
      jest.useFakeTimers();
      const histogram = new client.Histogram({ name: 'h', help: 'h' });
      const end = histogram.startTimer();
      jest.advanceTimersByTime(2500);
      expect(end()).toBeCloseTo(2.5, 6);
      jest.useRealTimers();
    });`;

  it('keeps no test process alive', async () => {
    // Two workers: each is a plain fork with an IPC channel.
    const output = await jest(TEST, ['--maxWorkers=2']);
    assert.match(output, /Tests: +6 passed/);
    assert.doesNotMatch(output, /did not exit|failed to exit gracefully|force exited/);
  });

  it('leaves no handle open', async () => {
    const output = await jest(TEST, ['--runInBand', '--detectOpenHandles']);
    assert.match(output, /Tests: +6 passed/);
    assert.doesNotMatch(output, /open handle|did not exit/);
  });
});

describe('files that programs use in browsers and edge runtimes', () => {
  /** What any of them has: a replacement of `util`, as bundlers bring it. */
  const AVAILABLE = { util: require('node:util') };

  /**
   * Loads a file where there is no Node.js: no `process`, no `Buffer`, no built-in modules but those given.
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

  it('record and render there', async () => {
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

  it('are not what the root is', () => {
    assert.throws(() => loadElsewhere(path.join(ROOT, 'index.js')), /requires node:|process is not defined/);
  });
});
