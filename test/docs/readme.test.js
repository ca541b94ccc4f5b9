'use strict';

// Every JavaScript snippet of the README is run as it stands there, in a directory where this package is installed under
// its own name and in prom-client's place.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const zlib = require('node:zlib');
const client = require('../..');
const { Program, get } = require('../fixtures/program');
const { RecordingServer } = require('../fixtures/pushgateway-recorder');

const ROOT = path.join(__dirname, '../..');
const README = fs.readFileSync(path.join(ROOT, 'README.md'), 'utf8');
const TIMEOUT = 20_000;
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** The fenced JavaScript blocks by the heading above them; a second one below the same heading is "heading 2". */
function snippetsOf(markdown) {
  const snippets = new Map();
  let heading = '';
  for (const [, newHeading, code] of markdown.matchAll(/^#+ (.*)$|^```js\n([^]*?)^```$/gm)) {
    if (newHeading !== undefined) {
      heading = newHeading;
      continue;
    }
    let name = heading;
    for (let i = 2; snippets.has(name); i++) name = `${heading} ${i}`;
    snippets.set(name, code);
  }
  return snippets;
}

const portOf = async (program, wanted, count) =>
  `http://127.0.0.1:${(await program.line(new RegExp(`^@@ ${wanted} is (\\d+)$`), count))[1]}`;

async function textOf(url) {
  const { status, headers, body } = await get(url);
  assert.strictEqual(status, 200);
  assert.strictEqual(headers['content-type'], PROMETHEUS_TEXT);
  return body.toString();
}

/** What each snippet has to do. */
const CHECKS = {
  'One process': async program => {
    const url = await portOf(program, 3000);
    assert.strictEqual((await get(`${url}/`)).body.toString(), 'Hello\n');
    await get(`${url}/some/where?else`);
    const text = await textOf(`${url}/metrics`);
    assert.match(text, /^http_requests_total\{path="\/"\} 1$/m);
    assert.match(text, /^http_requests_total\{path="other"\} 1$/m);
    assert.match(text, /^http_request_duration_seconds_count 2$/m);
  },
  'Default metrics': async program => {
    const text = await textOf(await portOf(program, 3000));
    const names = Array.from(text.matchAll(/^# TYPE (\S+) /gm), ([, name]) => name);
    assert.ok(names.length > 20 && names.every(name => name.startsWith('shop_')), text);
    assert.match(text, /^shop_process_cpu_seconds_total\{region="eu"\} \d/m);
    assert.match(text, /^shop_nodejs_version_info\{version="v[^}]*region="eu"\} 1$/m);
  },
  Pushgateway: async (program, gateway) => {
    assert.strictEqual(await program.ended(), 0, program.errors);
    const [{ method, path: group, body }, ...others] = gateway.requests.splice(0);
    assert.deepStrictEqual([method, group, others], ['PUT', '/metrics/job/backup/target/disk', []]);
    assert.match(body.toString(), /^backup_last_success_timestamp_seconds 1\d{9}(\.\d+)?$/m);
  },
  'A cluster': async program => {
    const url = await portOf(program, 3000, 4);
    const metrics = await portOf(program, 3001);
    for (let i = 0; i < 10; i++) await get(url);
    assert.match(await textOf(metrics), /^http_requests_total 10$/m);
    const { headers, body } = await get(metrics, { 'accept-encoding': 'gzip' });
    assert.strictEqual(headers['content-encoding'], 'gzip');
    assert.match(zlib.gunzipSync(body).toString(), /^http_requests_total 10$/m);
  },
  "With prom-client's own call": async program => {
    await portOf(program, 3000, 2);
    const text = await textOf(await portOf(program, 3001));
    const [, start] = /^worker_start_time_seconds ([\d.]+)$/m.exec(text);
    assert.ok(Number(start) <= Date.now() / 1000 && Number(start) > Date.now() / 1000 - 60);
  },
  'Ending a worker': async program => {
    assert.strictEqual((await get(await portOf(program, 3000))).body.toString(), 'Hello\n');
    await program.stop();
    assert.strictEqual(await program.ended(), 0);
  },
  Options: async program => {
    assert.strictEqual(await program.ended(), 0);
  },
  metricsHandler: async program => {
    assert.strictEqual(await textOf(`${await portOf(program, 3000)}/metrics`), '\n');
  },
  'metricsHandler 2': async program => {
    assert.strictEqual(await textOf(`${await portOf(program, 3000)}/metrics`), '\n');
  },
  'OpenMetrics and exemplars': async program => {
    const { headers, body } = await get(await portOf(program, 3000));
    assert.strictEqual(headers['content-type'], client.openMetricsContentType);
    const [sample, ...end] = body.toString().split('\n').slice(2);
    assert.match(
      sample,
      /^http_requests_total\{status="200"\} 1 # \{trace_id="4bf92f3577b34da6"\} 1 [\d.]+$/,
    );
    assert.deepStrictEqual(end, ['# EOF', '']);
  },
  'OpenMetrics and exemplars 2': async program => {
    const url = await portOf(program, 3000, 2);
    const metrics = await portOf(program, 3001);
    await get(url, { 'x-trace-id': '4bf92f3577b34da6' });
    const { headers, body } = await get(metrics);
    assert.strictEqual(headers['content-type'], client.openMetricsContentType);
    assert.match(
      body.toString(),
      /^http_request_duration_seconds_bucket\{le="[\d.]+"\} 1 # \{trace_id="4bf92f3577b34da6"\} [\d.e-]+ [\d.]+$/m,
    );
    assert.match(body.toString(), /^http_request_duration_seconds_count 1$/m);
    assert.match(body.toString(), /\n# EOF\n$/);
  },
};

describe('the README', () => {
  const snippets = snippetsOf(README);
  let directory;
  let gateway;

  before(async () => {
    gateway = await RecordingServer.start();
    directory = fs.mkdtempSync(path.join(os.tmpdir(), 'readme-'));
    fs.mkdirSync(path.join(directory, 'node_modules'));
    for (const [name, target] of [
      ['prom-client', ROOT],
      ['prom-client-cluster', ROOT],
      ['express', path.join(ROOT, 'node_modules/express')],
      ['fastify', path.join(ROOT, 'node_modules/fastify')],
    ]) {
      fs.symlinkSync(target, path.join(directory, 'node_modules', name), 'junction');
    }
  });

  after(async () => {
    await gateway.stop();
    fs.rmSync(directory, { recursive: true });
  });

  it('has the snippets that are run here, and no other', () => {
    assert.deepStrictEqual([...snippets.keys()].sort(), Object.keys(CHECKS).sort());
  });

  // Under its own name, one of each kind is enough: all that differs is where the package is found.
  const ownName = ['One process', 'A cluster', 'OpenMetrics and exemplars'];
  for (const [packageName, names] of [
    ['prom-client', [...snippets.keys()]],
    ['prom-client-cluster', ownName],
  ]) {
    for (const name of names) {
      const code = snippets.get(name);
      it(`"${name}" runs with '${packageName}'`, { timeout: TIMEOUT }, async () => {
        const renamed = code.replaceAll("'prom-client'", `'${packageName}'`);
        assert.ok(renamed.includes(`'${packageName}'`), 'it uses the library');
        const isModule = /^import /m.test(renamed);
        const file = path.join(directory, `${packageName} ${name}.${isModule ? 'mjs' : 'cjs'}`);
        fs.writeFileSync(file, renamed);
        const preload = path.join(__dirname, 'fixtures/any-port.js');
        const program = new Program(['--require', preload, file], {
          cwd: directory,
          env: { TMPDIR: directory, PUSHGATEWAY_URL: gateway.url },
        });
        try {
          await CHECKS[name](program, gateway);
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

  it('names each option of AggregatorRegistry with its default', () => {
    const { AggregatorRegistry } = client;
    const section = README.slice(README.indexOf('### Options'), README.indexOf('### metricsHandler'));
    const documented = Array.from(
      section.matchAll(/^\| `(\w+)` +\| (?:milliseconds|path|boolean)/gm),
      match => match[1],
    );
    const source = fs.readFileSync(path.join(ROOT, 'lib/cluster/aggregator-registry.js'), 'utf8');
    const existing = Array.from(source.matchAll(/@param \{\w+\} \[options\.(\w+)\]/g), match => match[1]);
    // Those of the constructor come first; clusterMetricsBytes() has options of its own.
    assert.deepStrictEqual(
      documented,
      [...new Set(existing)].filter(option => option !== 'gzip'),
    );
    for (const option of ['timeout', 'retiredMaxAge']) {
      assert.throws(() => new AggregatorRegistry(undefined, { [option]: 'x' }), TypeError);
    }
    assert.throws(() => new AggregatorRegistry(undefined, { directory: '' }), TypeError);
  });

  it('says truly what is missing', () => {
    const status = README.slice(README.indexOf('## Status'), README.indexOf('## Development'));
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
