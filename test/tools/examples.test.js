'use strict';

// Every example of the tarball runs unchanged in an application that has the library in place of prom-client,
// as README.md installs it, and its output shows what it is meant to show.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, beforeEach, after, afterEach } = require('node:test');
const { Program, get } = require('../fixtures/program');
const { RecordingServer } = require('../fixtures/pushgateway-recorder');
const { ROOT, makePlace, pack, installAlone } = require('../package/fixtures/drop-in-package');

const place = makePlace({ after });
const application = path.join(place, 'application');
const EXAMPLES = path.join(application, 'example');
const STOCK = path.join(ROOT, 'node_modules/prom-client');
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const TIMEOUT = 300_000; // for a program that hangs; a busy machine needs a minute to compile TypeScript

let directory;
/** @type {Program[]} */
let programs;
/** @type {string} */
let installed;

before(async () => {
  const { tarball } = await pack(place);
  installed = await installAlone(tarball, application);
  fs.cpSync(path.join(installed, 'example'), EXAMPLES, { recursive: true });
  for (const framework of ['express', 'fastify']) {
    const from = path.join(ROOT, 'node_modules', framework);
    fs.symlinkSync(from, path.join(application, 'node_modules', framework), 'junction');
  }
});

beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'));
  programs = [];
});

afterEach(async () => {
  await Promise.all(programs.map(program => program.stop()));
  fs.rmSync(directory, { recursive: true });
});

/**
 * @param {string} name of an example, or the path of a program
 * @param {Record<string, string>} [env]
 */
function run(name, env = {}) {
  const program = new Program([path.resolve(EXAMPLES, name)], { env: { TMPDIR: directory, ...env } });
  programs.push(program);
  return program;
}

/** Starts an example that serves its own metrics. */
async function serverOf(name) {
  const program = run(name, { PORT: '0' });
  const [metrics, origin] = await program.line(/^(http:\/\/127.0.0.1:\d+)\/metrics$/);
  return { program, metrics, origin };
}

async function textOf(url) {
  const { status, headers, body } = await get(url);
  assert.strictEqual(status, 200);
  assert.strictEqual(headers['content-type'], PROMETHEUS_TEXT);
  return body.toString();
}

/**
 * Copies an example of several files somewhere else, where packages are installed.
 *
 * @param {string} name
 * @param {string} destination
 * @param {Record<string, string>} packages where each of them is
 */
function install(name, destination, packages) {
  fs.cpSync(path.join(EXAMPLES, name), destination, { recursive: true });
  for (const [packageName, target] of Object.entries(packages)) {
    const link = path.join(destination, 'node_modules', packageName);
    fs.mkdirSync(path.dirname(link), { recursive: true });
    fs.symlinkSync(target, link, 'junction');
  }
}

async function outputOf(name) {
  const program = run(name);
  assert.strictEqual(await program.ended(), 0, program.errors);
  return program.output;
}

/** The examples that have a test; the last test compares them with the folder. */
const tested = [];

function example(name, check, options = {}) {
  tested.push(name);
  it(name, { timeout: TIMEOUT, ...options }, () => check(name));
}

describe('the example', () => {
  example('counter.js', async name => {
    assert.strictEqual(
      await outputOf(name),
      `# HELP jobs_processed_total Processed jobs
# TYPE jobs_processed_total counter
jobs_processed_total{queue="mail",result="done"} 5
jobs_processed_total{queue="mail",result="failed"} 1
jobs_processed_total{queue="import",result="done"} 1000
`,
    );
  });

  example('native-histogram.js', async name => {
    assert.strictEqual(
      await outputOf(name),
      `# HELP query_duration_seconds Duration of database queries
# TYPE query_duration_seconds histogram
query_duration_seconds_bucket{le="+Inf",query="list"} 1000
query_duration_seconds_sum{query="list"} 500.5
query_duration_seconds_count{query="list"} 1000
# half of the queries took up to 0.50 s, 99 % up to 0.99 s
`,
    );
  });

  example('gauge.js', async name => {
    const before = Date.now() / 1000;
    const output = await outputOf(name);
    assert.match(output, /^connections_open 2$/m);
    const shown = Array.from(output.matchAll(/^queue_length (\d+)$/gm), ([, length]) => length);
    assert.deepStrictEqual(shown, ['3', '2']);
    const [, time] = /^backup_last_success_timestamp_seconds\{target="disk"\} ([\d.]+)$/m.exec(output);
    assert.ok(Number(time) >= before && Number(time) <= Date.now() / 1000);
  });

  example('histogram.js', async name => {
    const output = await outputOf(name);
    assert.match(output, /^query_duration_seconds_bucket\{le="0.001",query="list"\} 0$/m);
    assert.match(output, /^query_duration_seconds_bucket\{le="0.004",query="list"\} 1$/m);
    assert.match(output, /^query_duration_seconds_bucket\{le="1.024",query="list"\} 2$/m);
    assert.match(output, /^query_duration_seconds_sum\{query="list"\} 0.503$/m);
    const [, sum] = /^query_duration_seconds_sum\{query="insert"\} (\S+)$/m.exec(output);
    const [, seconds] = /^# the insert took (\S+) s$/m.exec(output);
    assert.strictEqual(sum, seconds);
    assert.ok(Number(seconds) > 0);
  });

  example('summary.js', async name => {
    const output = await outputOf(name);
    assert.match(output, /^upload_size_bytes\{quantile="0.5"\} 51712$/m); // 50.5 of 1..100, by 1024
    assert.match(output, /^upload_size_bytes\{quantile="0.9"\} 92672$/m);
    assert.match(output, /^upload_size_bytes_sum 5171200$/m);
    assert.match(output, /^upload_size_bytes_count 100$/m);
  });

  example('server.js', async name => {
    const { metrics, origin } = await serverOf(name);
    assert.strictEqual((await get(`${origin}/hello/fr`)).body.toString(), 'Bonjour\n');
    await get(`${origin}/hello/fr`);
    assert.strictEqual((await get(`${origin}/hello/constructor`)).status, 404);
    const text = await textOf(metrics);
    assert.match(text, /^greetings_total\{language="fr"\} 2$/m);
    assert.ok(!text.includes('constructor'));
    const count = 'http_request_duration_seconds_count{method="GET",route="/hello/:language"';
    assert.ok(text.includes(`\n${count},status="200"} 2\n`), text);
    assert.ok(text.includes(`\n${count},status="404"} 1\n`), text);
  });

  example('cluster.js', async name => {
    const program = run(name, { PORT: '0', METRICS_PORT: '0', WORKERS: '2' });
    const [, metrics] = await program.line(/^metrics at (.*)$/);
    const [, url] = await program.line(/^worker \d+ at (.*)$/, 2);
    const countOf = async () => {
      const { body } = await get(metrics);
      return Number(/^http_requests_total\{route="\/"\} (\d+)$/m.exec(body.toString())?.[1]);
    };
    const pids = new Map();
    let sent = 0;
    while (pids.size < 2 || sent < 20) {
      const [, worker, pid] = /^worker (\d+), process (\d+)$/m.exec((await get(url)).body.toString());
      pids.set(worker, Number(pid));
      sent++;
    }
    assert.strictEqual(await countOf(), sent);

    // Requests after the last scrape of a worker that then ends are counted.
    for (let i = 0; i < 10; i++) await get(url);
    const [[worker, pid]] = pids;
    process.kill(pid, 'SIGTERM');
    await program.line(new RegExp(`^worker ${worker} ended$`));
    await program.line(/^worker 3 at /);
    assert.strictEqual(await countOf(), sent + 10);
  });

  const skip = process.platform === 'win32' && 'no signals on Windows';
  const gracefully = async name => {
    const gateway = await RecordingServer.start();
    try {
      const program = run(name, {
        PORT: '0',
        METRICS_PORT: '0',
        WORKERS: '2',
        DRAIN_DELAY: '100',
        PUSHGATEWAY_URL: gateway.url,
      });
      const [, url] = await program.line(/^worker \d+ at (.*)$/, 2);

      // No request fails while the workers are replaced.
      const restarted = program.line(/^restarted$/);
      let hasRestarted = false;
      restarted.then(() => (hasRestarted = true));

      program.signal('SIGHUP');
      let sent = 0;
      for (; !hasRestarted; sent++) assert.strictEqual((await get(url)).status, 200);
      assert.ok(sent > 0);
      for (const worker of [1, 2]) assert.ok(program.lines.includes(`worker ${worker} ended: 0`));

      // A request in progress is finished, and is in the last totals.
      const report = get(`${url}report`);
      await program.line(/^worker \d+ writes a report$/);

      program.signal('SIGTERM');
      assert.strictEqual((await report).body.toString(), 'report\n');
      assert.strictEqual(await program.ended(), 0, program.errors);
      for (const worker of [3, 4]) assert.ok(program.lines.includes(`worker ${worker} ended: 0`));
      const pushed = gateway.requests.map(({ body }) => body.toString());
      assert.strictEqual(pushed.length, 1);
      assert.match(pushed[0], new RegExp(`^http_requests_total\\{route="/"\\} ${sent}$`, 'm'));
      assert.match(pushed[0], /^http_requests_total\{route="\/report"\} 1$/m);
    } finally {
      await gateway.stop();
    }
  };
  example('graceful-shutdown.js', gracefully, { skip });

  example('default-metrics.js', async name => {
    const { metrics, origin } = await serverOf(name);
    await get(`${origin}/a`);
    await get(`${origin}/b`);
    const text = await textOf(metrics);
    assert.match(text, /^shop_carts\{service="shop"\} 2$/m);
    assert.match(text, /^process_cpu_seconds_total\{service="shop"\} [\d.]+$/m);
    const [, bytes] = /^process_resident_memory_bytes\{service="shop"\} (\d+)$/m.exec(text);
    assert.ok(Number(bytes) > 1e7, bytes);
    assert.match(text, new RegExp(`^nodejs_version_info\\{version="${process.version}",`, 'm'));
  });

  example('exemplars.js', async name => {
    const { metrics, origin } = await serverOf(name);
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await get(`${origin}/`, { traceparent: `00-${trace}-00f067aa0ba902b7-01` });
    await get(`${origin}/nowhere`);
    assert.doesNotMatch(await textOf(metrics), /trace_id/);
    const { headers, body } = await get(metrics, { accept: 'application/openmetrics-text' });
    assert.match(headers['content-type'], /^application\/openmetrics-text; version=1.0.0;/);
    const exemplars = body.toString().match(/^.* # \{.*$/gm);
    assert.strictEqual(exemplars.length, 1);
    const [, value] = new RegExp(
      `^http_request_duration_seconds_bucket\\{le="[\\d.]+",status="200"\\} 1 # \\{trace_id="${trace}"\\} (\\S+) [\\d.]+$`,
    ).exec(exemplars[0]);
    assert.ok(Number(value) > 0);
    assert.match(body.toString(), /^http_request_duration_seconds_count\{status="404"\} 1$/m);
  });

  example('pushgateway.js', async name => {
    const gateway = await RecordingServer.start();
    try {
      const program = run(name, { PUSHGATEWAY_URL: gateway.url });
      assert.strictEqual(await program.ended(), 0, program.errors);
      assert.strictEqual(program.output, 'pushed: 200\n');
      const [{ method, path: group, headers, body }] = gateway.requests;
      assert.strictEqual(gateway.requests.length, 1);
      assert.strictEqual(method, 'PUT');
      const [, file] = /^\/metrics\/job\/import\/file@base64\/([\w-]+)$/.exec(group);
      assert.strictEqual(Buffer.from(file, 'base64url').toString(), 'in/customers.csv');
      assert.strictEqual(headers['content-type'], PROMETHEUS_TEXT);
      assert.match(body.toString(), /^import_rows_total 2$/m);
      assert.match(body.toString(), /^import_duration_seconds [\d.e-]+$/m);
      assert.match(body.toString(), /^import_last_success_timestamp_seconds 1\d{9}(\.\d+)?$/m);
    } finally {
      await gateway.stop();
    }
  });

  example('fastify.js', async name => {
    const { metrics, origin } = await serverOf(name);
    await get(`${origin}/users/1`);
    await get(`${origin}/users/2`);
    await get(`${origin}/nowhere`);
    const count = 'http_request_duration_seconds_count{method="GET"';
    const text = await textOf(metrics);
    assert.ok(text.includes(`\n${count},route="/users/:id",status="200"} 2\n`), text);
    assert.ok(text.includes(`\n${count},route="none",status="404"} 1\n`), text);
  });

  example('es-module.mjs', async name => {
    const { metrics, origin } = await serverOf(name);
    await get(`${origin}/`);
    await get(`${origin}/a`);
    await get(`${origin}/b`);
    const text = await textOf(metrics);
    assert.match(text, /^http_requests_total\{path="\/"\} 1$/m);
    assert.match(text, /^http_requests_total\{path="other"\} 2$/m);
    assert.match(text, /^modules_are_one 1$/m);
  });

  example('typescript/server.ts', async name => {
    const project = path.join(directory, 'typescript');
    const types = path.join(ROOT, 'node_modules/@types/node');
    install(path.dirname(name), project, { 'prom-client': installed, '@types/node': types });
    const compiler = new Program([path.join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', project]);
    programs.push(compiler);
    assert.strictEqual(await compiler.ended(), 0, compiler.output);

    const { metrics, origin } = await serverOf(path.join(project, 'build/server.js'));
    await get(`${origin}/`);
    await get(`${origin}/`);
    const text = await textOf(metrics);
    assert.match(text, /^http_requests_total\{path="\/",method="GET"\} 2$/m);
    assert.match(text, /^queue_length 2$/m);
    assert.match(text, /^nodejs_version_info\{/m);
  });

  /** The metrics of an application written for prom-client, with either library. */
  async function swapped(name, library) {
    const project = fs.mkdtempSync(path.join(directory, 'swap-'));
    install(path.dirname(name), project, {
      'prom-client': library,
      express: path.join(ROOT, 'node_modules/express'),
    });
    const program = run(path.join(project, path.basename(name)), {
      PORT: '0',
      METRICS_PORT: '0',
      WORKERS: '2',
    });
    const [, metrics] = await program.line(/^metrics at (.*)$/);
    const [, url] = await program.line(/^worker \d+ at (.*)$/, 2);
    for (const count of [1, 2, 30, 400]) await get(`${url}items/${count}`);
    const text = await textOf(metrics);
    await program.stop();
    return {
      text,
      families: Array.from(text.matchAll(/^# TYPE (.*)$/gm), ([, family]) => family).sort(),
      application: Array.from(text.matchAll(/^(?:http_|worker_).*$/gm), ([sample]) => sample).sort(),
    };
  }

  example('swap/app.js', async name => {
    const [theirs, ours] = await Promise.all([swapped(name, STOCK), swapped(name, installed)]);
    assert.deepStrictEqual(ours.families, theirs.families);
    assert.deepStrictEqual(ours.application, theirs.application);
    assert.ok(ours.families.length > 20);
    assert.match(ours.text, /^http_requests_total\{method="GET",status="200"\} 4$/m);
    assert.match(ours.text, /^http_response_size_bytes_bucket\{le="100"\} 2$/m);
    assert.match(ours.text, /^worker_count 2$/m);
  });

  it('every example has a test', () => {
    const examples = fs
      .readdirSync(EXAMPLES, { recursive: true })
      .map(name => name.replaceAll(path.sep, '/'))
      .filter(name => /\.(js|mjs|ts)$/.test(name))
      // These have test files of their own.
      .filter(name => !/^(demo|concurrency|heap-sizing|kubernetes)\//.test(name))
      // test/package/examples.test.js and pm2.test.js.
      .filter(name => !/^(koa\.|hono\.|nest\/|next\/|pm2\/|testing\/|threads\/)/.test(name));
    assert.deepStrictEqual([...tested].sort(), examples.sort());
  });

  it('example/swap and example/next depend on this package in its current version', () => {
    const { name, version } = require('../../package.json');
    for (const example of ['swap', 'next']) {
      const { dependencies } = require(`../../example/${example}/package.json`);
      assert.strictEqual(dependencies['prom-client'], `npm:${name}@^${version}`);
    }
  });

  it('every example loads the library by the name prom-client', () => {
    const programs = fs
      .readdirSync(EXAMPLES, { recursive: true })
      .filter(name => /\.(js|mjs|ts)$/.test(name));
    const other = /(require\(|from |import\()'(prom-client-cluster|\.\.\/\.\.)/;
    const shown = programs.filter(name => other.test(fs.readFileSync(path.join(EXAMPLES, name), 'utf8')));
    assert.deepStrictEqual(shown, []);
  });

  it('an example of a clone uses the library of the clone', async () => {
    assert.match(await outputOf(path.join(ROOT, 'example/counter.js')), /^# HELP jobs_processed_total/);
    const { metrics } = await serverOf(path.join(ROOT, 'example/es-module.mjs'));
    assert.match(await textOf(metrics), /^modules_are_one 1$/m);
  });
});
