'use strict';

// docs/scaling.md: the arithmetic is right, a real Prometheus shows what the document says beyond each limit,
// and promtool accepts the rules and configurations.

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const zlib = require('node:zlib');
const { PrometheusServer, missingPrograms } = require('../fixtures/prometheus-server');

const ROOT = path.join(__dirname, '../..');
const TEXT = fs.readFileSync(path.join(ROOT, 'docs/scaling.md'), 'utf8');
const BLOCKS = Array.from(TEXT.matchAll(/^```yaml\n([^]*?)^```$/gm), ([, block]) => block);
const WITHIN_MS = 300_000; // so long that a busy machine does not matter

const required = process.env.REQUIRE_ALL === '1';
const skipWithout = program => !required && missingPrograms([program]);

let directory;

before(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'scaling-'));
});

after(() => fs.rmSync(directory, { recursive: true }));

describe('the limits in docs/scaling.md', { skip: skipWithout('prometheus') }, () => {
  /** What each limit is set to in this test; the page has 10 samples with 2 labels each. */
  const LIMITS = {
    sample_limit: { sample_limit: 9 },
    body_size_limit: { body_size_limit: '300B' }, // its size with gzip is below
    label_limit: { label_limit: 3 },
    label_name_length_limit: { label_name_length_limit: 7 }, // instance has 8
    label_value_length_limit: { label_value_length_limit: 13 },
    scrape_timeout: { scrape_timeout: '1s', metrics_path: '/slow' },
  };
  const samples = Array.from({ length: 10 }, (_, i) => `http_requests_total{route="/${i}",status="200"} 1\n`);
  const PAGE = zlib.gzipSync(samples.join(''));
  assert.ok(PAGE.length < 300 && samples.join('').length > 300);
  let server;
  let prometheus;

  before(async () => {
    server = http.createServer((request, response) => {
      if (request.url === '/slow') return;
      response.setHeader('Content-Type', 'text/plain; version=0.0.4').setHeader('Content-Encoding', 'gzip');
      response.end(PAGE);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const targets = [`127.0.0.1:${server.address().port}`];
    const jobs = Object.entries({ ...LIMITS, none: {} }).map(([name, settings]) => ({
      job_name: name,
      static_configs: [{ targets }],
      ...settings,
    }));
    const file = path.join(directory, 'prometheus.yml');
    const configuration = { global: { scrape_interval: '2s' }, scrape_configs: jobs };
    fs.writeFileSync(file, JSON.stringify(configuration));
    prometheus = await PrometheusServer.startConfigured(file);
    await prometheus.numberWhen('count(up)', count => count === jobs.length, WITHIN_MS);
  });

  after(async () => {
    await prometheus?.stop();
    server?.closeAllConnections();
    server?.close();
  });

  it('a page within all limits is stored', async () => {
    await prometheus.numberWhen('up{job="none"}', up => up === 1, WITHIN_MS);
    assert.strictEqual(await prometheus.number('count(http_requests_total)'), 10);
  });

  for (const name of Object.keys(LIMITS)) {
    it(`beyond ${name} nothing is stored, up is 0, and the target page shows what the document has`, async () => {
      const row = new RegExp(`^\\| Prometheus .*\`${name}\`.*$`, 'm').exec(TEXT)?.[0];
      const documented = Array.from(
        row.matchAll(/`([^`]+ (?:exceeded|deadline [a-z]+))`/g),
        ([, text]) => text,
      );
      assert.strictEqual(await prometheus.number(`up{job="${name}"}`), 0);
      assert.strictEqual((await prometheus.query(`http_requests_total{job="${name}"}`)).length, 0);
      const { activeTargets } = await prometheus.ask('targets', { state: 'active' });
      const { lastError, health } = activeTargets.find(({ scrapePool }) => scrapePool === name);
      assert.strictEqual(health, 'down');
      assert.ok(
        documented.some(text => lastError.includes(text)),
        lastError,
      );
    });
  }
});

/** @param {string} text such as `2.1 bytes`, `8 kB` or `2 million` */
function quantity(text) {
  const [digits, unit] = text.split(' ');
  const factors = { kB: 1e3, MB: 1e6, million: 1e6, GB: 1e9, TB: 1e12 };
  return Number(digits.replaceAll(',', '')) * (factors[unit] ?? 1);
}

describe('docs/scaling.md', () => {
  it('the arithmetic is right', () => {
    const term = '\\d(?:[\\d.,]*\\d)?(?: [a-zA-Z]+)?';
    const formula = new RegExp(`((?:${term} [×/] )+${term}) ([=≈]) (${term})`, 'g');
    const formulas = [...TEXT.replace(/\s+/g, ' ').matchAll(formula)];
    assert.strictEqual(formulas.length, TEXT.match(/[=≈](?= \d|\n\d)/g).length);
    for (const [text, left, sign, right] of formulas) {
      const [first, ...steps] = left.split(/ (?=[×/] )/);
      const result = steps.reduce(
        (value, step) =>
          step[0] === '×' ? value * quantity(step.slice(2)) : value / quantity(step.slice(2)),
        quantity(first),
      );
      const error = Math.abs(quantity(right) / result - 1);
      assert.ok(error <= (sign === '=' ? 1e-9 : 0.05), `${text}: ${result}`);
    }
  });

  it('the recording rules are those of example/kubernetes', () => {
    const file = fs.readFileSync(path.join(ROOT, 'example/kubernetes/rules.yml'), 'utf8');
    const [recording] = file.split(/^ {2}- name: shop-alerts$/m);
    assert.strictEqual(BLOCKS[0].trim(), recording.replace(/^#.*\n/, '').trim());
  });

  it('promtool accepts the rules and configurations', { skip: skipWithout('promtool') }, () => {
    assert.strictEqual(BLOCKS.length, 3);
    for (const [i, block] of BLOCKS.entries()) {
      const file = path.join(directory, `${i}.yml`);
      fs.writeFileSync(file, block);
      execFileSync('promtool', ['check', block.startsWith('groups:') ? 'rules' : 'config', file]);
    }
  });
});
