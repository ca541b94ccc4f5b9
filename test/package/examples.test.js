'use strict';

// The examples for frameworks and test runners run unchanged, with the packed package.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { ROOT, run, makePlace, pack, installAlone } = require('./fixtures/drop-in-package');
const { Program, get } = require('../fixtures/program');

const PROGRAMS = path.join(__dirname, 'programs');
const modules = path.join(PROGRAMS, 'node_modules');
const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
const next = path.join(modules, 'next/dist/bin/next');
const env = { PORT: '0', NEXT_TELEMETRY_DISABLED: '1' };

/**
 * A copy of example/, where Node.js finds the frameworks. Turbopack does not follow links out of its root.
 */
let examples;

before(async () => {
  const { tarball } = await pack(makePlace({ after }));
  examples = fs.mkdtempSync(path.join(PROGRAMS, 'examples-'));
  fs.writeFileSync(path.join(examples, 'package.json'), '{}');
  const installed = await installAlone(tarball, examples);
  fs.cpSync(path.join(installed, 'example'), examples, { recursive: true });
});

after(() => fs.rmSync(examples, { recursive: true, force: true }));

/**
 * Starts a server.
 *
 * @param {import('node:test').TestContext} t
 * @param {string[]} args of node
 * @returns {Promise<string>} its address
 */
async function start(t, args, cwd = examples) {
  const program = new Program(args, { cwd, env });
  t.after(() => program.stop());
  const [origin] = await program.line(/http:\/\/127\.0\.0\.1:\d+/);
  return origin;
}

async function metricsOf(origin) {
  const { status, headers, body } = await get(`${origin}/metrics`);
  assert.strictEqual(status, 200);
  assert.strictEqual(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  return body.toString();
}

/** An application that answers /users/:id, with request metrics by route. */
async function assertRoutes(origin, { unknown }) {
  assert.strictEqual((await get(`${origin}/users/1`)).body.toString(), '{"id":"1"}');
  await get(`${origin}/users/2`);
  assert.strictEqual((await get(`${origin}/nowhere`)).status, 404);
  const text = await metricsOf(origin);
  const count = 'http_request_duration_seconds_count{method="GET"';
  assert.ok(text.includes(`\n${count},route="/users/:id",status="200"} 2\n`), text);
  assert.ok(text.includes(`\n${count},route="${unknown}",status="404"} 1\n`), text);
}

describe('the example', () => {
  it('koa.js', async t => assertRoutes(await start(t, ['koa.js']), { unknown: 'none' }));

  it('hono.js', async t => assertRoutes(await start(t, ['hono.js']), { unknown: '/*' }));

  it('threads/', async t => {
    const origin = await start(t, ['threads/server.js']);
    assert.strictEqual((await get(`${origin}/primes/1000`)).body.toString(), '{"primes":168}');
    const text = await metricsOf(origin);
    assert.match(text, /^jobs_total\{size="small"\} 1$/m);
    assert.match(text, /^http_request_duration_seconds_count 1$/m);
  });

  it('nest/main.ts', async t => {
    await run(process.execPath, [tsc, '--project', 'nest'], { cwd: examples });
    const origin = await start(t, ['nest/build/main.js']);
    await assertRoutes(origin, { unknown: 'none' });
    assert.match(await metricsOf(origin), /^nodejs_version_info\{/m);
  });

  for (const { title, config } of [
    { title: 'next/', config: undefined },
    { title: 'next/ with a copy of the package in the bundle of each route', config: 'module.exports = {};' },
  ])
    it(title, async t => {
      const application = path.join(examples, 'next');
      if (config !== undefined) fs.writeFileSync(path.join(application, 'next.config.js'), config);
      await run(process.execPath, [next, 'build'], { cwd: application, env });
      const origin = await start(t, [next, 'start', '-H', '127.0.0.1', '-p', '0'], application);
      assert.match(await metricsOf(origin), /^# TYPE orders_total counter$/m);
      const order = { method: 'POST', body: JSON.stringify({ gift: true }) };
      for (let i = 0; i < 2; i++) assert.strictEqual((await fetch(`${origin}/orders`, order)).status, 201);
      const text = await metricsOf(origin);
      assert.match(text, /^orders_total\{kind="gift"\} 2$/m);
      assert.match(text, /^nodejs_version_info\{/m);
    });

  for (const [name, args] of Object.entries({
    'testing/node.test.js': ['--test', '--test-reporter=tap', 'testing/node.test.js'],
    'testing/jest.test.js': [path.join(modules, 'jest/bin/jest.js'), '--runInBand', 'testing/jest.test.js'],
    'testing/vitest.test.mjs': [path.join(modules, 'vitest/vitest.mjs'), 'run', 'testing/vitest.test.mjs'],
  })) {
    it(name, async () => {
      // Node.js does not run tests in a process that a test run has started.
      const settings = { cwd: examples, env: { NODE_TEST_CONTEXT: undefined, NO_COLOR: '1' } };
      const { stdout, stderr } = await run(process.execPath, args, settings);
      assert.match(stdout + stderr, /^(# pass 3|Tests: +3 passed, 3 total| +Tests +3 passed \(3\))$/m);

      // They fail if the code that they test counts wrongly.
      const code = path.join(examples, 'testing/jobs.js');
      const right = fs.readFileSync(code, 'utf8');
      fs.writeFileSync(code, right.replace("result: 'failed'", "result: 'done'"));
      try {
        await assert.rejects(
          run(process.execPath, args, settings),
          /jobs_total\{queue="mail",result="done"\} [23]\n/,
        );
      } finally {
        fs.writeFileSync(code, right);
      }
    });
  }
});
