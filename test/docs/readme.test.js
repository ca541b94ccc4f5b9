'use strict';

// Runs the JavaScript of README.md and of the pages in docs/ unchanged, in an application that has the
// tarball in place of prom-client, as README.md installs it, and some of it under the package's own name.
// Compares facts of the README with the code.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const zlib = require('node:zlib');
const client = require('../..');
const { codeBlocks } = require('./fixtures/code-blocks');
const { run, pack, installAlone } = require('../package/fixtures/drop-in-package');
const { Program, get } = require('../fixtures/program');
const { familiesOf } = require('../fixtures/protobuf-page');
const { RecordingServer } = require('../fixtures/pushgateway-recorder');
const { missingPrograms } = require('../fixtures/prometheus-server');
const { FakeReceiver } = require('../push/fixtures/receiver');

const ROOT = path.join(__dirname, '../..');
const read = document => fs.readFileSync(path.join(ROOT, document), 'utf8');
const README = read('README.md');
const skip = process.env.REQUIRE_ALL !== '1' && missingPrograms(['promtool']);
const TIMEOUT = 300_000; // for a program that hangs
const BEGAN = Date.now() / 1000;
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

const portOf = async (program, wanted, count) =>
  `http://127.0.0.1:${(await program.line(new RegExp(`^@@ ${wanted} is (\\d+)$`), count))[1]}`;

async function textOf(url) {
  const { status, headers, body } = await get(url);
  assert.strictEqual(status, 200);
  assert.strictEqual(headers['content-type'], PROMETHEUS_TEXT);
  return body.toString();
}

/** A program that serves a page on each of its two ports. */
async function servesAndCounts(program) {
  await get(await portOf(program, 3000));
  await get(await portOf(program, 3000));
  assert.match(await textOf(await portOf(program, 3001)), /^http_requests_total 2$/m);
}

async function isCluster(program) {
  const url = await portOf(program, 3000, 4);
  const metrics = await portOf(program, 3001);
  for (let i = 0; i < 10; i++) await get(url);
  assert.match(await textOf(metrics), /^http_requests_total 10$/m);
  const { headers, body } = await get(metrics, { 'accept-encoding': 'gzip' });
  assert.strictEqual(headers['content-encoding'], 'gzip');
  assert.match(zlib.gunzipSync(body).toString(), /^http_requests_total 10$/m);
}

async function servesDefaultMetrics(program) {
  assert.match(await textOf(`${await portOf(program, 3000)}/metrics`), /^nodejs_version_info\{/m);
}

async function ends(program) {
  assert.strictEqual(await program.ended(), 0, program.errors);
}

/** A program ends, and prints what the comments behind its calls of console.log() say. */
async function prints(program, code) {
  await ends(program);
  const expected = Array.from(code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm), ([, text]) => text);
  const printed = program.output.split('\n').filter(line => line !== '' && !line.startsWith('@@'));
  if (expected.length > 0) assert.deepStrictEqual(printed, expected);
}

/** The expected behaviour of each block. A block without an entry has to end without an error. */
const CHECKS = {
  'README.md: One process': servesAndCounts,
  'README.md: A cluster': isCluster,
  'README.md: One process 2': servesAndCounts,
  'README.md: A cluster 2': isCluster,
  'docs/cluster.md: Clusters': isCluster,
  'docs/cluster.md: The page from a worker': async program => {
    const url = await portOf(program, 3000, 4);
    for (let i = 0; i < 4; i++) await get(url);
    assert.match(await textOf(`${url}/metrics`), /^http_requests_total 4$/m);
  },
  "docs/cluster.md: prom-client's own call": async program => {
    await portOf(program, 3000, 2);
    const text = await textOf(await portOf(program, 3001));
    const [, start] = /^worker_start_time_seconds ([\d.]+)$/m.exec(text);
    assert.ok(Number(start) >= BEGAN && Number(start) <= Date.now() / 1000, start);
  },
  'docs/threads.md: Worker threads': async program => {
    const url = await portOf(program, 3000);
    // A thread takes some time to start.
    while (!/^jobs_total 2$/m.test(await textOf(url)));
  },
  'docs/default-metrics.md: Default metrics': async program => {
    const text = await textOf(await portOf(program, 3000));
    const names = Array.from(text.matchAll(/^# TYPE (\S+) /gm), ([, name]) => name);
    assert.ok(names.length > 20 && names.every(name => name.startsWith('shop_')), text);
    assert.match(text, /^shop_process_cpu_seconds_total\{region="eu"\} \d/m);
    assert.match(text, /^shop_nodejs_version_info\{version="v[^}]*region="eu"\} 1$/m);
  },
  'docs/default-metrics.md: Runtime metrics': async program => {
    const text = await textOf(await portOf(program, 3000));
    assert.match(text, /^nodejs_heap_limit_bytes \d/m);
    assert.match(text, /^nodejs_eventloop_delay_seconds_count \d/m);
  },
  'docs/ending-workers.md: Handle SIGTERM': async program => {
    assert.strictEqual((await get(await portOf(program, 3000))).body.toString(), 'Hello\n');
    await program.stop();
    await ends(program);
  },
  'docs/groups.md: Groups: PM2, reusePort, systemd': async program => {
    const url = await portOf(program, 3000);
    for (let i = 0; i < 2; i++) await get(url);
    assert.match(await textOf(`${url}/metrics`), /^http_requests_total 2$/m);
  },
  'docs/label-limits.md: Label limits': async program => {
    const text = await textOf(await portOf(program, 3000));
    const [, documented] = /^```text\n([^]*?)^```$/m.exec(read('docs/label-limits.md'));
    assert.strictEqual(text.replace(/^#.*\n/gm, ''), documented);
  },
  'docs/lifetime.md: Lifetime of series': async program => {
    const text = await textOf(await portOf(program, 3000));
    assert.match(text, /^device_messages_total\{device="d-1"\} 1$/m);
  },
  'docs/metrics-endpoint.md: With express': servesDefaultMetrics,
  'docs/metrics-endpoint.md: With fastify': servesDefaultMetrics,
  'docs/metrics-endpoint.md: On a separate port': async program => {
    const url = await portOf(program, 3000);
    assert.match(await textOf(`${url}/metrics`), /^process_cpu_seconds_total \d/m);
    await program.stop();
    await ends(program);
  },
  'docs/metrics-endpoint.md: Formats': async program => {
    const url = await portOf(program, 3000);
    assert.match(await textOf(url), /^process_cpu_seconds_total \d/m);
    const { headers, body } = await get(url, { accept: 'application/openmetrics-text;version=1.0.0' });
    assert.strictEqual(headers['content-type'], client.openMetricsContentType);
    assert.match(body.toString(), /^# TYPE process_cpu_seconds counter$.*\n# EOF\n$/ms);
  },
  "docs/metrics-endpoint.md: With node:http, on the application's port": async program => {
    const url = await portOf(program, 3000);
    assert.strictEqual((await get(`${url}/`)).body.toString(), 'Hello\n');
    await get(`${url}/some/where?else`);
    const text = await textOf(`${url}/metrics`);
    assert.match(text, /^http_requests_total\{path="\/"\} 1$/m);
    assert.match(text, /^http_requests_total\{path="other"\} 1$/m);
    assert.match(text, /^http_request_duration_seconds_count 2$/m);
  },
  'docs/native-histograms.md: Native histograms': async program => {
    await get(await portOf(program, 3000));
    const url = await portOf(program, 3001);
    assert.match(
      await textOf(url),
      /^http_request_duration_seconds_bucket\{le="0.005",status="200"\} [01]$/m,
    );
    const accept =
      'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited';
    const { headers, body } = await get(url, { accept: `${accept},text/plain;version=0.0.4;q=0.5` });
    assert.strictEqual(headers['content-type'], client.Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE);
    const [{ metric }] = familiesOf(body);
    assert.deepStrictEqual([metric[0].histogram.schema, metric[0].histogram.count], [3, 1]);
  },
  'docs/native-histograms.md: Remote write': async (program, gateway, receiver) => {
    await ends(program);
    const found = receiver.series.get('backup_file_size_bytes_sum{"instance":"box-1","job":"backup"}');
    assert.strictEqual(found?.value, 123456);
  },
  'docs/openmetrics.md: OpenMetrics and exemplars': async program => {
    const url = await portOf(program, 3000);
    const sample = 'http_request_duration_seconds_bucket{le="0.25",status="200"} 1';
    assert.ok((await textOf(url)).includes(`\n${sample}\n`));
    const { headers, body } = await get(url, { accept: 'application/openmetrics-text;version=1.0.0' });
    assert.strictEqual(headers['content-type'], client.openMetricsContentType);
    const line = new RegExp(`^${sample} # {trace_id="4bf92f3577b34da6"} 0.2 [\\d.]+$`, 'm');
    assert.match(body.toString(), line);
    assert.match(body.toString(), /\n# EOF\n$/);
  },
  'docs/openmetrics.md: In a cluster': async program => {
    const url = await portOf(program, 3000, 2);
    const metrics = await portOf(program, 3001);
    await get(url, { 'x-trace-id': '4bf92f3577b34da6' });
    assert.match(await textOf(metrics), /^http_request_duration_seconds_count 1$/m);
    const { headers, body } = await get(metrics, { accept: 'application/openmetrics-text;version=1.0.0' });
    assert.strictEqual(headers['content-type'], client.openMetricsContentType);
    assert.match(
      body.toString(),
      /^http_request_duration_seconds_bucket\{le="[\d.]+"\} 1 # \{trace_id="4bf92f3577b34da6"\} [\d.e-]+ [\d.]+$/m,
    );
    assert.match(body.toString(), /^http_request_duration_seconds_count 1$/m);
    assert.match(body.toString(), /\n# EOF\n$/);
  },
  'docs/remote-write.md: Remote write': async (program, gateway, receiver) => {
    await ends(program);
    // start() pushes at once, before the program counts.
    assert.strictEqual(receiver.series.get('shop_sold_total{"instance":"box-1","job":"shop"}')?.value, 0);
  },
  'docs/pushgateway.md: Pushgateway': async (program, gateway) => {
    await ends(program);
    const [{ method, path: group, body }, ...others] = gateway.requests.splice(0);
    assert.deepStrictEqual([method, group, others], ['PUT', '/metrics/job/backup/target/disk', []]);
    assert.match(body.toString(), /^backup_last_success_timestamp_seconds 1\d{9}(\.\d+)?$/m);
  },
};

describe('the code of README.md and docs/', () => {
  const blocks = new Map(codeBlocks().map(({ name, code }) => [name, code]));
  // The README shows the first lines of its programs as ES modules, which end with the first empty line.
  for (const name of ['README.md: One process', 'README.md: A cluster']) {
    const program = blocks.get(name);
    blocks.set(`${name} 2`, blocks.get(`${name} 2`) + program.slice(program.indexOf('\n\n') + 1));
  }
  let directory;
  let gateway;
  let receiver;

  before(async () => {
    gateway = await RecordingServer.start();
    receiver = await FakeReceiver.start();
    directory = fs.mkdtempSync(path.join(os.tmpdir(), 'readme-'));
    const { tarball } = await pack(directory);
    for (const name of ['prom-client', 'prom-client-cluster']) await installAlone(tarball, directory, name);
    for (const name of ['express', 'fastify']) {
      const target = path.join(ROOT, 'node_modules', name);
      fs.symlinkSync(target, path.join(directory, 'node_modules', name), 'junction');
    }
  });

  after(async () => {
    await gateway.stop();
    await receiver.stop();
    fs.rmSync(directory, { recursive: true });
  });

  it('every block with a check exists', () => {
    for (const name of Object.keys(CHECKS)) assert.ok(blocks.has(name), name);
  });

  // Under its own name one block of each kind is enough, because only the resolution of the package differs.
  const ownName = [
    'README.md: One process',
    'README.md: A cluster',
    'docs/openmetrics.md: OpenMetrics and exemplars',
  ];
  for (const [packageName, names] of [
    ['prom-client', [...blocks.keys()]],
    ['prom-client-cluster', ownName],
  ]) {
    for (const name of names) {
      const code = blocks.get(name);
      it(`"${name}" runs with '${packageName}'`, { timeout: TIMEOUT }, async () => {
        const renamed = code.replaceAll("'prom-client'", `'${packageName}'`);
        assert.ok(renamed.includes(`'${packageName}'`), 'it uses the library');
        const isModule = /^import /m.test(renamed);
        const stem = `${packageName} ${name}`.replace(/[^\w.-]+/g, '-');
        const file = path.join(directory, `${stem}.${isModule ? 'mjs' : 'cjs'}`);
        fs.writeFileSync(file, renamed);
        const preload = path.join(__dirname, 'fixtures/any-port.js');
        const program = new Program(['--require', preload, file], {
          cwd: directory,
          env: {
            TMPDIR: directory,
            PUSHGATEWAY_URL: gateway.url,
            REMOTE_WRITE_URL: receiver.url,
            // The programs keep the default of 5 s, which is too short on a busy machine.
            PROM_CLIENT_CLUSTER_TIMEOUT: '60000',
          },
        });
        try {
          if (name in CHECKS) await CHECKS[name](program, gateway, receiver);
          else await prints(program, code);
        } catch (error) {
          error.message += `\n${program.output}${program.errors}`;
          throw error;
        } finally {
          await program.stop();
        }
        assert.strictEqual(program.errors, '');
      });
    }
  }
});

describe('README.md', () => {
  it('Prometheus accepts the scrape_configs', { skip }, async t => {
    const [, text] = /```yaml\n(scrape_configs:[^]*?)```/.exec(README);
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'readme-')), 'prometheus.yml');
    t.after(() => fs.rmSync(path.dirname(file), { recursive: true }));
    fs.writeFileSync(file, text);
    const { stdout } = await run('promtool', ['check', 'config', file]);
    assert.match(stdout, /is valid prometheus config/);
  });

  it('the section Status names exactly what is missing of prom-client', () => {
    const status = README.slice(README.indexOf('## Status'), README.indexOf('## Licence'));
    const stock = require('prom-client');
    for (const name of Object.keys(stock)) {
      const isMissing = !(name in client);
      assert.strictEqual(
        status.includes(`\`${name}`),
        isMissing,
        `${name} ${isMissing ? 'is missing' : 'is there'}`,
      );
    }
    const theirs = fs
      .readdirSync(path.join(ROOT, 'node_modules/prom-client/lib'), { recursive: true })
      .filter(file => file.endsWith('.js'));
    const exported = require('../../package.json').exports;
    const privateFiles = theirs.filter(file => !(`./lib/${file}` in exported)).map(withoutEnding);
    const documented = Array.from(status.matchAll(/`(lib\/[^`]+)`/g), ([, file]) => file);
    assert.ok(documented.every(file => privateFiles.some(name => name.startsWith(file))));
    assert.ok(privateFiles.every(name => documented.some(file => name.startsWith(file))));
  });
});

/** A file of prom-client as it is written in an import. */
function withoutEnding(file) {
  return `lib/${file.replaceAll(path.sep, '/').replace(/\.js$/, '')}`;
}
