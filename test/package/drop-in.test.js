'use strict';

// Installs the tarball in place of prom-client next to packages that build on prom-client, as a user would,
// and runs an application of each. Installs from the npm registry, so it needs a network.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { ROOT, run, npm, makePlace, pack, manifestOf } = require('./fixtures/drop-in-package');
const { Program, get } = require('../fixtures/program');

const FIXTURES = path.join(__dirname, 'fixtures');
// A new major version may need another Node.js, or change what the tests look for.
const PACKAGES = [
  'express@5',
  'express-prom-bundle@8',
  'fastify@5',
  'fastify-metrics@13',
  '@willsoto/nestjs-prometheus@6',
  // Parts of Nest 12 need Node.js 22.
  '@nestjs/common@11',
  '@nestjs/core@11',
  '@nestjs/platform-express@11',
  'reflect-metadata@0',
  'rxjs@7',
  'prometheus-api-metrics@4',
  '@promster/express@14',
];
const TYPES = ['typescript@5', '@types/node@20', '@types/express@5'];
const CLIENT = [
  'express-prom-bundle',
  'fastify-metrics',
  '@willsoto/nestjs-prometheus',
  'prometheus-api-metrics',
];

// Only a test that fails anyway waits this long.
const PATIENCE = 240_000;

const place = makePlace({ after });
/** An application with this client. */
const ours = path.join(place, 'ours');
/** The same application with prom-client. */
const theirs = path.join(place, 'theirs');

before(async () => {
  const { tarball } = await pack(place);
  await Promise.all([install(ours, `prom-client@file:${tarball}`), install(theirs, 'prom-client@15.1.3')]);
});

/**
 * @param {string} application
 * @param {string} client
 */
async function install(application, client) {
  fs.mkdirSync(application);
  const manifest = { name: 'application', version: '1.2.3', private: true };
  fs.writeFileSync(path.join(application, 'package.json'), JSON.stringify(manifest));
  // Scripts would build an optional native module.
  await npm(['install', '--ignore-scripts', client, ...PACKAGES, ...TYPES], application);
  for (const name of fs.readdirSync(FIXTURES).filter(name => /^drop-in-(?!package).*\.[jt]s$/.test(name))) {
    fs.copyFileSync(path.join(FIXTURES, name), path.join(application, name));
  }
  const decorators = ['--experimentalDecorators', '--emitDecoratorMetadata'];
  await compile(application, 'drop-in-nestjs-prometheus.ts', decorators);
}

/**
 * Compiles a program of an application.
 *
 * @param {string} application
 * @param {string} file
 * @param {string[]} [options]
 */
function compile(application, file, options = []) {
  const tsc = path.join(application, 'node_modules/typescript/lib/tsc.js');
  const common = [
    '--strict',
    '--esModuleInterop',
    '--module',
    'node16',
    '--target',
    'es2022',
    '--skipLibCheck',
  ];
  return run(process.execPath, [tsc, file, ...common, '--types', 'node', ...options], { cwd: application });
}

/**
 * Starts an application.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} name
 * @param {Record<string, string>} [env]
 * @param {string} [cwd]
 */
function start(t, name, env, cwd = ours) {
  const program = new Program([`drop-in-${name}.js`], { cwd, env });
  t.after(() => program.hasEnded || program.stop());
  return program;
}

/** The address at which a program listens. */
async function addressOf(program, name = 'application', count = 1) {
  const [, port] = await program.line(new RegExp(`^@@ ${name} (\\d+)$`), count);
  return `http://127.0.0.1:${port}`;
}

/** Makes requests to an application. */
async function greet(url, times = 3) {
  for (let i = 0; i < times; i++) {
    const { status, body } = await get(`${url}/hello`);
    assert.deepStrictEqual({ status, text: body.toString() }, { status: 200, text: 'Hello' });
  }
}

/** The exposition of an application. */
async function metricsOf(url) {
  const { status, headers, body } = await get(`${url}/metrics`);
  assert.strictEqual(status, 200, body.toString());
  assert.match(headers['content-type'], /^text\/plain/);
  return body.toString();
}

/** Scrapes until the text matches: some packages count a request after they have answered it. */
async function metricsWith(url, pattern) {
  for (const end = Date.now() + PATIENCE; ;) {
    const text = await metricsOf(url);
    if (pattern.test(text)) return text;
    assert.ok(Date.now() < end, `${pattern} never comes: ${text}`);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

describe('npm', () => {
  it('the dependency tree has no problem, and one client for all packages', async () => {
    const { stdout } = await npm(['ls', '--all', '--json'], ours);
    const { problems } = JSON.parse(stdout);
    assert.deepStrictEqual(problems ?? [], []);
    const places = (await run('npm', ['query', '#prom-client', '--json'], { cwd: ours })).stdout;
    const shown = JSON.parse(places).map(({ name, location }) => ({ name, location }));
    assert.deepStrictEqual(shown, [{ name: 'prom-client-cluster', location: 'node_modules/prom-client' }]);
  });

  it('every package resolves prom-client to this client', () => {
    const index = fs.realpathSync(path.join(ours, 'node_modules/prom-client/index.js'));
    for (const name of CLIENT) {
      const from = fs.realpathSync(path.join(ours, 'node_modules', name));
      assert.strictEqual(require.resolve('prom-client', { paths: [from] }), index, name);
    }
    assert.strictEqual(manifestOf(path.dirname(index)).name, 'prom-client-cluster');
  });
});

describe('a package that pins prom-client and depends on @prometheus-io/client', () => {
  const application = path.join(place, 'pinned');
  const document = fs.readFileSync(path.join(ROOT, 'docs/migration.md'), 'utf8');

  before(async () => {
    const pinning = path.join(place, 'pinning');
    const dependencies = { 'prom-client': '15.1.2', '@prometheus-io/client': '0.16.1' };
    const code = "exports.clients = [require('prom-client'), require('@prometheus-io/client')];";
    for (const directory of [pinning, application]) fs.mkdirSync(directory);
    fs.writeFileSync(path.join(pinning, 'index.js'), code);
    fs.writeFileSync(
      path.join(pinning, 'package.json'),
      JSON.stringify({ name: 'pinning', version: '1.0.0', dependencies }),
    );
    await npm(['pack', '--pack-destination', application], pinning);
    const [{ overrides }] = Array.from(document.matchAll(/```json\n([^]*?)```/g), ([, json]) =>
      JSON.parse(json),
    );
    assert.deepStrictEqual(Object.keys(overrides), Object.keys(dependencies));
    const client = `file:${(await pack(application)).tarball}`;
    const manifest = {
      private: true,
      dependencies: { 'prom-client': client, pinning: 'file:pinning-1.0.0.tgz' },
      overrides,
    };
    fs.writeFileSync(path.join(application, 'package.json'), JSON.stringify(manifest));
    await npm(['install'], application);
  });

  it('a package that pins prom-client and depends on @prometheus-io/client gets this library under both names with the overrides of docs/migration.md', async () => {
    const { stdout } = await npm(['ls', 'prom-client', '@prometheus-io/client'], application);
    const found = stdout.match(/(prom-client|@prometheus-io\/client)@.*$/gm);
    assert.strictEqual(found.length, 3);
    for (const line of found) assert.match(line, /@npm:prom-client-cluster@/);
  });

  it('a package that pins prom-client and depends on @prometheus-io/client has its metrics on the page, of both names if they are merged as docs/migration.md says', async () => {
    const programs = Array.from(document.matchAll(/```javascript\n([^]*?)```/g), ([, code]) => code);
    const merging = programs.find(code => code.includes('merge('));
    const program = `${merging}
      const [one, two] = require('pinning').clients;
      new one.Counter({ name: 'of_one_total', help: 'h' }).inc();
      new two.Histogram({ name: 'of_two', help: 'h', buckets: [1] }).observe(2);
      const server = require('node:http').createServer(handler).listen(0, '127.0.0.1', async () => {
        console.log(await register.metrics());
        console.log('--- merged');
        console.log(await (await fetch(\`http://127.0.0.1:\${server.address().port}\`)).text());
        server.close();
      });`;
    const { stdout, stderr } = await run(process.execPath, ['-e', program], { cwd: application });
    const [own, merged] = stdout.split('--- merged');
    assert.match(own, /^of_one_total 1$/m);
    assert.doesNotMatch(own, /of_two/);
    assert.match(merged, /^of_one_total 1$/m);
    assert.match(merged, /^of_two_sum 2$/m);
    assert.match(
      stderr,
      /\[PROM_CLIENT_CLUSTER_COPY\] .*@prometheus-io[\\/]client, used by the package pinning\./,
    );
  });
});

it('this library has all that @prometheus-io/client exports', () => {
  const successor = require('@prometheus-io/client');
  const own = require('../..');
  const shown = Object.keys(successor).filter(name => !(name in own));
  assert.deepStrictEqual(shown, []);
  for (const name of ['Registry', 'ClusterRegistry']) {
    const missing = Object.getOwnPropertyNames(successor[name]).filter(member => !(member in own[name]));
    assert.deepStrictEqual(missing, [], name);
  }
});

describe('express-prom-bundle', () => {
  it('express-prom-bundle measures requests in summaries with a window', async t => {
    const url = await addressOf(start(t, 'express-prom-bundle', { METRIC_TYPE: 'summary' }));
    await greet(url);
    const text = await metricsWith(url, /^http_request_duration_seconds_count\{.*path="\/hello".*\} 3$/m);
    assert.match(
      text,
      /^http_request_duration_seconds\{quantile="0\.5",status_code="200",.*\} 0\.\d+(e-\d+)?$/m,
    );
  });

  it('express-prom-bundle measures requests in a registry of its own', async t => {
    const url = await addressOf(start(t, 'express-prom-bundle', { OWN_REGISTRY: '1' }));
    await greet(url);
    await metricsWith(url, /^http_request_duration_seconds_count\{.*path="\/hello".*\} 3$/m);
  });

  it('express-prom-bundle measures the requests of a cluster, those of ended workers included', async t => {
    const program = start(t, 'express-prom-bundle', { CLUSTER: '1' });
    const url = await addressOf(program, 'application', 2);
    const metrics = await addressOf(program, 'metrics');
    await greet(url, 10);
    const count =
      /^http_request_duration_seconds_count\{status_code="200",method="GET",path="\/hello",project="x"\} 10$/m;
    assert.match(await metricsWith(metrics, count), /^up 2$/m);
    await assert.rejects(get(`${url}/leave`));
    await program.line(/^@@ exit \d$/);
    await metricsWith(metrics, /^up 1$/m);
    await metricsWith(metrics, count);
  });
});

/** Where prom-client has the same page: the lines that show three requests, and others. */
const SAME = {
  'express-prom-bundle': [
    /^http_request_duration_seconds_count\{status_code="200",method="GET",path="\/hello",project="x"\} 3$/m,
    /^up 1$/m,
    /^nodejs_version_info\{/m,
  ],
  'fastify-metrics': [
    /^http_request_duration_seconds_count\{method="GET",route="\/hello",status_code="200"\} 3$/m,
    /^http_request_summary_seconds_count\{.*route="\/hello".*\} 3$/m,
    /^own_total 3$/m,
  ],
  'nestjs-prometheus': [
    /^hello_total\{from="here",app="nest"\} 3$/m,
    /^hello_now\{app="nest"\} 3$/m,
    /^hello_seconds_count\{app="nest"\} 3$/m,
    /^hello_sizes\{quantile="0\.5",app="nest"\} 5$/m,
  ],
  'prometheus-api-metrics': [
    /^http_request_duration_seconds_count\{method="GET",route="\/hello",code="200"\} 3$/m,
    /^app_version\{/m,
  ],
  promster: [
    /^http_requests_total\{.*path="\/hello".*\} 3$/m,
    /^http_request_duration_seconds_count\{.*path="\/hello".*\} 3$/m,
    /^nodejs_up 1$/m,
  ],
};

/** The families of a text in their order, and the label sets of those about requests. */
function shapeOf(text) {
  const families = text.match(/^# TYPE .*$/gm);
  const samples = text.match(/^\w*(?:http|requests)\w*(?:\{.*\})? /gm);
  return { families, samples };
}

describe('the same application with prom-client', () => {
  for (const [name, [count, ...others]] of Object.entries(SAME)) {
    it(`${name} measures requests, and shows the metrics that it shows with prom-client`, async t => {
      const texts = [];
      for (const application of [ours, theirs]) {
        const url = await addressOf(start(t, name, {}, application));
        await greet(url);
        // A second scrape, because some packages count scrapes too, without the current one.
        await metricsOf(url);
        texts.push(await metricsWith(url, count));
        for (const pattern of others) assert.match(texts.at(-1), pattern);
      }
      assert.deepStrictEqual(shapeOf(texts[0]), shapeOf(texts[1]));
    });
  }

  it('prometheus-api-metrics serves metrics as JSON', async t => {
    const url = await addressOf(start(t, 'prometheus-api-metrics'));
    await greet(url);
    await metricsWith(url, SAME['prometheus-api-metrics'][0]);
    const { body } = await get(`${url}/metrics.json`);
    const { values } = JSON.parse(body.toString()).find(
      family => family.name === 'http_request_duration_seconds',
    );
    const count = values.find(
      ({ metricName, labels }) => metricName.endsWith('_count') && labels.route === '/hello',
    );
    assert.strictEqual(count.value, 3);
  });
});

describe('TypeScript', () => {
  it('the types of these packages compile with prom-client and with this client', async () => {
    await compile(theirs, 'drop-in-types.ts', ['--noEmit']);
    await compile(ours, 'drop-in-types.ts', ['--noEmit']);
  });
});
