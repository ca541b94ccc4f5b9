'use strict';

// Every example is run as it is, and says what it is there to show.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');
const { Program, get } = require('./fixtures/program');

const EXAMPLES = path.join(__dirname, '../example');
const TIMEOUT = 20_000;

let directory;
/** @type {Program[]} */
let programs;

beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'));
  programs = [];
});

afterEach(async () => {
  await Promise.all(programs.map(program => program.stop()));
  fs.rmSync(directory, { recursive: true });
});

function run(name, env = {}) {
  const program = new Program([path.join(EXAMPLES, name)], { env: { TMPDIR: directory, ...env } });
  programs.push(program);
  return program;
}

async function outputOf(name) {
  const program = run(name);
  assert.strictEqual(await program.ended(), 0, program.errors);
  return program.output;
}

/** Each test names its example, so that none is forgotten. */
const tested = [];

function example(name, check) {
  tested.push(name);
  it(name, { timeout: TIMEOUT }, () => check(name));
}

describe('the example', () => {
  example('counter.js', async name => {
    assert.strictEqual(
      await outputOf(name),
      `# HELP jobs_processed_total Jobs that were processed
# TYPE jobs_processed_total counter
jobs_processed_total{queue="mail",result="done"} 5
jobs_processed_total{queue="mail",result="failed"} 1
jobs_processed_total{queue="import",result="done"} 1000
`,
    );
  });

  example('gauge.js', async name => {
    const before = Date.now() / 1000;
    const output = await outputOf(name);
    assert.match(output, /^connections_open 2$/m);
    assert.deepStrictEqual(
      Array.from(output.matchAll(/^queue_length (\d+)$/gm), ([, length]) => length),
      ['3', '2'],
    );
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
    const program = run(name, { PORT: '0' });
    const [url, origin] = await program.line(/^(http:\/\/127.0.0.1:\d+)\/metrics$/);
    assert.strictEqual((await get(`${origin}/hello/fr`)).body.toString(), 'Bonjour\n');
    await get(`${origin}/hello/fr`);
    assert.strictEqual((await get(`${origin}/hello/constructor`)).status, 404);
    const { status, headers, body } = await get(url);
    assert.strictEqual(status, 200);
    assert.strictEqual(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    const text = body.toString();
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

    // Requests after the last scrape, and then a worker that ends: nothing is lost.
    for (let i = 0; i < 10; i++) await get(url);
    const [[worker, pid]] = pids;
    process.kill(pid, 'SIGTERM');
    await program.line(new RegExp(`^worker ${worker} ended$`));
    await program.line(/^worker 3 at /);
    assert.strictEqual(await countOf(), sent + 10);
  });

  it('is tested, whichever it is', () => {
    const examples = fs.readdirSync(EXAMPLES).filter(name => name.endsWith('.js'));
    assert.deepStrictEqual([...tested].sort(), examples.sort());
  });
});
