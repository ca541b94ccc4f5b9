'use strict';

// WorkerRegistry in tests of applications: Jest runs test files in contexts of their own, Vitest in threads.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const { run } = require('./fixtures/drop-in-package');

const ROOT = path.join(__dirname, '../..');
const PROGRAMS = path.join(__dirname, 'programs/node_modules');
const PATIENT_JEST = path.join(__dirname, 'fixtures/patient-jest.js');
const PATIENCE = 600_000;

const THREAD = `
  const { Counter, WorkerRegistry } = require('prom-client');
  const { parentPort } = require('node:worker_threads');
  new WorkerRegistry();
  new Counter({ name: 'jobs_total', help: 'h' }).inc(5);
  parentPort.on('message', () => {});
  parentPort.postMessage('ready');`;

/** @param {boolean} releases whether the test file releases its WorkerRegistry */
const testFile = releases => `
  test('the metrics of a thread', async () => {
    const registry = new WorkerRegistry(undefined, true);
    expect(registry.workerCount()).toBe(0);
    const thread = new Worker(THREAD);
    try {
      await once(thread, 'message');
      expect(await registry.workerMetrics()).toContain('jobs_total 5');
    } finally {
      // Otherwise the test runner does not end after a failure.
      await thread.terminate();
    }
    expect(await registry.workerMetrics()).toContain('jobs_total 5');
    expect(registry.workerCount()).toBe(0);
    if (!${releases}) return;
    await registry.shutdown();
    expect(channel('worker_threads').hasSubscribers).toBe(false);
  });

  test('nothing is left of an earlier WorkerRegistry', async () => {
    const registry = new WorkerRegistry(undefined, true);
    if (${releases}) expect(await registry.workerMetrics()).toBe('');
    await registry.shutdown();
  });`;

const MODULES = [
  ['{ channel }', 'node:diagnostics_channel'],
  ['{ once }', 'node:events'],
  ['{ Worker }', 'node:worker_threads'],
  ['{ WorkerRegistry }', 'prom-client'],
];

describe('test runners', () => {
  const project = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'thread-runners-'));

  before(() => {
    fs.mkdirSync(path.join(project, 'node_modules'));
    fs.symlinkSync(ROOT, path.join(project, 'node_modules/prom-client'), 'junction');
    fs.symlinkSync(path.join(PROGRAMS, 'vitest'), path.join(project, 'node_modules/vitest'), 'junction');
    const jest = { testEnvironment: 'node', testTimeout: PATIENCE };
    fs.writeFileSync(path.join(project, 'package.json'), JSON.stringify({ jest }));
    const thread = path.join(project, 'thread.cjs');
    fs.writeFileSync(thread, THREAD);
    const required = MODULES.map(([names, module]) => `const ${names} = require('${module}');`);
    const imported = [['{ test, expect }', 'vitest'], ...MODULES].map(
      ([names, module]) => `import ${names} from '${module}';`,
    );
    for (const [name, releases] of /** @type {const} */ ([
      ['one', true],
      ['two', true],
      ['three', false],
    ])) {
      const code = [`const THREAD = ${JSON.stringify(thread)};`, testFile(releases)];
      fs.writeFileSync(path.join(project, `${name}.test.js`), [...required, ...code].join('\n'));
      fs.writeFileSync(path.join(project, `${name}.spec.mjs`), [...imported, ...code].join('\n'));
    }
  });

  after(() => fs.rmSync(project, { recursive: true, force: true }));

  /**
   * @param {string} program
   * @param {string[]} args
   * @param {string[]} [nodeArgs]
   * @returns {Promise<string>} what it writes
   */
  async function outputOf(program, args, nodeArgs = []) {
    const { stdout, stderr } = await run(
      process.execPath,
      [...nodeArgs, path.join(PROGRAMS, program), ...args],
      { cwd: project, env: { NODE_OPTIONS: '', NODE_ENV: 'test', NO_COLOR: '1', FORCE_COLOR: undefined } },
    );
    const output = stdout + stderr;
    assert.doesNotMatch(output, /open handle|did not exit|failed to exit|force exited|Warning|hanging/i);
    return output;
  }

  for (const args of [['--detectOpenHandles'], ['--workerThreads', '--maxWorkers=2']]) {
    it(`WorkerRegistry works in Jest, and leaves nothing: ${args.join(' ')}`, async () => {
      // By default, Jest complains about a process that has not ended after a second.
      const options = ['--ci', '--no-cache', '--watchman=false', `--openHandlesTimeout=${PATIENCE / 2}`];
      const output = await outputOf('jest/bin/jest.js', [...options, ...args], ['--require', PATIENT_JEST]);
      assert.match(output, /Tests: +6 passed/);
    });
  }

  for (const pool of ['threads', 'vmThreads']) {
    it(`WorkerRegistry works in Vitest, and leaves nothing: ${pool}`, async () => {
      const timeouts = [`--testTimeout=${PATIENCE}`, `--teardownTimeout=${PATIENCE / 2}`];
      const args = ['run', `--pool=${pool}`, '--maxWorkers=2', ...timeouts, 'spec'];
      assert.match(await outputOf('vitest/vitest.mjs', args), /Tests +6 passed/);
    });
  }
});
