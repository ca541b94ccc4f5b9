'use strict';

// The tarball on each line of Node.js that it is for: from CommonJS, from ES modules, from TypeScript, in a
// cluster. Installs the programs of Node.js from the npm registry, so it is part of `npm run test:long`.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { Registry, collectDefaultMetrics } = require('../..');
const {
  ROOT,
  run,
  npm,
  makePlace,
  pack,
  installAlone,
  manifestOf,
} = require('../package/fixtures/drop-in-package');

const VERSIONS = [20, 22, 24, 26];
const FIXTURES = path.join(ROOT, 'test/package/fixtures');
const TSC = path.join(ROOT, 'node_modules/typescript/lib/tsc.js');
const STRICT = [
  '--strict',
  '--esModuleInterop',
  '--module',
  'node16',
  '--target',
  'es2022',
  '--types',
  'node',
];

/** Tests outside the library's that depend on the version of Node.js. */
const OTHER_TESTS = ['test/package/loading.test.js', 'test/faults/thread.test.js'];

/** For all tests of the library on a busy machine. */
const TESTS_TIMEOUT = 3_600_000;

const place = makePlace({ after });
const application = path.join(place, 'application');
const programs = path.join(place, 'programs');

before(async () => {
  const { tarball } = await pack(place);
  await installAlone(tarball, application);
  fs.mkdirSync(programs);
  fs.writeFileSync(path.join(programs, 'package.json'), '{"name": "programs", "private": true}');
  await npm(['install', ...VERSIONS.map(version => `node${version}@npm:node@${version}`)], programs);
  for (const name of ['loading-everything.cjs', 'loading-everything.mts']) {
    fs.copyFileSync(path.join(FIXTURES, name), path.join(application, name));
  }
  fs.symlinkSync(
    path.join(ROOT, 'node_modules/@types'),
    path.join(application, 'node_modules/@types'),
    'junction',
  );
  await run(process.execPath, [TSC, 'loading-everything.mts', ...STRICT], { cwd: application });
});

/**
 * Runs a program on a version of Node.js.
 *
 * @param {number} version
 * @param {string[]} args
 * @param {import('node:child_process').ExecFileOptions} [options]
 */
function runOn(version, args, { cwd = application, ...options } = {}) {
  const folder = path.join(programs, `node_modules/node${version}/bin`);
  const env = {
    PATH: `${folder}${path.delimiter}${process.env.PATH}`,
    // This process is a test that reports to another one; what it runs is not.
    NODE_TEST_CONTEXT: undefined,
    NODE_OPTIONS: '',
  };
  const program = path.join(folder, process.platform === 'win32' ? 'node.exe' : 'node');
  return run(program, args, { cwd, ...options, env });
}

/** The names of the metrics that `runtime: true` adds on this machine and that have a sample. */
async function runtimeMetrics() {
  const [standing, all] = [new Registry(), new Registry()];
  collectDefaultMetrics({ register: standing })();
  const stop = collectDefaultMetrics({ register: all, runtime: true });
  const families = await all.getMetricsAsJSON();
  stop();
  return families
    .filter(({ name, values }) => standing.getSingleMetric(name) === undefined && values.length > 0)
    .map(({ name }) => name);
}

function assertImported(stdout) {
  assert.deepStrictEqual(JSON.parse(stdout), {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    same: true,
    text: '# HELP c h\n# TYPE c counter\nc{a="x"} 3\n\n# HELP g h\n# TYPE g gauge\ng 2\n',
  });
}

for (const version of VERSIONS) {
  describe(`Node.js ${version}`, () => {
    it(`this runs on Node.js ${version}`, async () => {
      const { stdout } = await runOn(version, ['--version']);
      assert.match(stdout, new RegExp(`^v${version}\\.`));
      assert.match(manifestOf(ROOT).engines.node, /^>=20$/);
    });

    it(`a cluster is aggregated with Node.js ${version}`, async () => {
      const { stdout, stderr } = await runOn(version, ['loading-everything.cjs']);
      assert.strictEqual(stderr, '');
      const { status, text, refused, files } = JSON.parse(stdout);
      assert.deepStrictEqual({ status, refused, files }, { status: 200, refused: {}, files: true });
      assert.match(text, /^c_total\{a="x"\} 4 # \{trace_id="y"\} 2 \d+(\.\d+)?$/m);
      assert.match(text, /^g 3$/m);
      assert.match(text, /^h_bucket\{le="1"\} 2$/m);
      assert.match(text, /^s\{quantile="0\.5"\} 3$/m);
      assert.match(text, /^global_total 2$/m);
      assert.match(text, new RegExp(`^nodejs_version_info\\{version="v${version}\\..*\\} 1$`, 'm'));
      for (const name of [
        'process_cpu_seconds_total',
        'nodejs_eventloop_lag_p99_seconds',
        'nodejs_active_resources_total',
      ]) {
        assert.match(text, new RegExp(`^${name} [\\d.e-]+$`, 'm'));
      }
      const added = await runtimeMetrics();
      assert.ok(added.length >= 16, added.join());
      for (const name of added) {
        assert.match(text, new RegExp(`^${name}(_count)?(\\{[^}]*\\})? [\\d.e+-]+$`, 'm'));
      }
      assert.ok(text.endsWith('# EOF\n'));
    });

    it(`Node.js ${version} imports names from compiled TypeScript`, async () => {
      assertImported((await runOn(version, ['loading-everything.mjs'])).stdout);
    });

    it(
      `Node.js ${version} imports names from TypeScript as it is`,
      { skip: version < 22 && 'Node.js 20 does not take types away' },
      async () => {
        assertImported((await runOn(version, ['loading-everything.mts'])).stdout);
      },
    );

    it(`the tests of the library pass with Node.js ${version}`, async () => {
      for (const tests of [['library'], OTHER_TESTS]) {
        const args = ['scripts/run-tests.js', ...tests];
        await runOn(version, args, { cwd: ROOT, timeout: TESTS_TIMEOUT }).catch(error => {
          assert.fail(error.stdout?.split('\nfailed:\n')[1] ?? error.message);
        });
      }
    });
  });
}
