'use strict';

// The tarball in Bun and in Deno: metrics, pages and endpoints are those of Node.js. Installs these runtimes
// from the npm registry, so it needs a network.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { it, before, after } = require('node:test');
const { run, npm, makePlace, pack, installAlone } = require('./fixtures/drop-in-package');

const RUNTIMES = {
  bun: { version: '1', args: [], lacks: ['nodejs_gc_duration_seconds'] },
  deno: {
    version: '2',
    // Without --allow-env, --allow-read and --allow-sys, which prom-client does not need either.
    args: ['run', '--no-prompt', '--allow-net=127.0.0.1'],
    lacks: ['process_virtual_memory_bytes', 'process_heap_bytes', 'process_open_fds', 'process_max_fds'],
    threads: 'WorkerRegistry needs Node.js: this runtime cannot read a BroadcastChannel',
  },
};

const place = makePlace({ after });
const application = path.join(place, 'application');
let expected;

/** Runs the program; its results, and the names of the default metrics. */
async function results(program, args = []) {
  const { stdout, stderr } = await run(program, [...args, 'program.mjs'], { cwd: application });
  assert.match(stderr, /Metric other_total has no option `label_names`: did you mean `labelNames`\?/);
  return JSON.parse(stdout);
}

before(async () => {
  const { tarball } = await pack(place);
  await installAlone(tarball, application);
  // Deno finds dependencies that package.json declares.
  const manifest = { private: true, dependencies: { 'prom-client': `file:${tarball}` } };
  fs.writeFileSync(path.join(application, 'package.json'), JSON.stringify(manifest));
  fs.copyFileSync(
    path.join(__dirname, 'fixtures/runtimes-program.mjs'),
    path.join(application, 'program.mjs'),
  );
  expected = await results(process.execPath);
});

for (const [name, { version, args, lacks, threads = 'served' }] of Object.entries(RUNTIMES)) {
  it(`${name} has the metrics, pages and endpoints of Node.js`, async t => {
    const programs = path.join(place, name);
    fs.mkdirSync(programs);
    fs.writeFileSync(path.join(programs, 'package.json'), '{"name": "programs", "private": true}');
    const program = path.join(programs, 'node_modules/.bin', name);
    try {
      await npm(['install', `${name}@${version}`], programs);
      await run(program, ['--version']);
    } catch (error) {
      return t.skip(`${name} cannot be installed: ${error.message.split('\n')[0]}`);
    }
    const found = await results(program, args);
    assert.deepStrictEqual(found.results, expected.results);
    const missing = expected.names.filter(metric => !found.names.includes(metric));
    assert.deepStrictEqual(missing, lacks);
    assert.strictEqual(found.threads, threads);
  });
}
