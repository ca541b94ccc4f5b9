'use strict';

// Native histograms and start timestamps in Prometheus with version 3. conformance.test.js has remote write.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const { skip } = require('./built-prometheus');
const {
  Counter,
  Gauge,
  Histogram,
  Registry,
  Summary,
  collectDefaultMetrics,
  metricsHandler,
} = require('../../..');
const { PrometheusServer } = require('../../fixtures/prometheus-server');

const ROOT = path.join(__dirname, '../../..');
const WITHIN_MS = 120_000;
const QUANTILES = [0, 0.1, 0.5, 0.9, 0.99, 1];
/** Of both signs and sizes far apart, some of them on bounds, some in the zero bucket. */
const VALUES = Array.from({ length: 300 }, (_, i) =>
  i % 10 === 0
    ? 0
    : (i % 7 === 0 ? -1 : 1) * 1.7 ** ((i % 31) - 15) * (i % 3 === 0 ? 1 : 2 ** ((i % 16) / 8)),
);
const ZERO_THRESHOLD = 2 ** -128;

/** How each job is scraped: native, with classic buckets besides, and text. */
const JOBS = {
  native: { scrape_native_histograms: true },
  both: { scrape_native_histograms: true, always_scrape_classic_histograms: true },
  text: { scrape_native_histograms: false, scrape_protocols: ['PrometheusText0.0.4'] },
};
const FLAGS = ['--enable-feature=created-timestamp-zero-ingestion,exemplar-storage'];

/**
 * Starts Prometheus with a job for each way to scrape.
 *
 * @param {string} url whose host has the metrics
 * @param {string[]} jobs
 */
async function scraping(url, jobs) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'prometheus-3-'));
  const file = path.join(directory, 'prometheus.yml');
  const configuration = {
    global: { scrape_interval: '1s' },
    scrape_configs: jobs.map(job_name => ({
      job_name,
      ...JOBS[job_name],
      static_configs: [{ targets: [new URL(url).host], labels: { instance: 'i' } }],
    })),
  };
  fs.writeFileSync(file, JSON.stringify(configuration));
  const prometheus = await PrometheusServer.startConfigured(file, FLAGS);
  fs.rmSync(directory, { recursive: true });
  return prometheus;
}

async function listening(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** Prometheus has these observations of a native histogram: count, sum, each bucket, quantiles. */
async function assertHas(prometheus, selector, values, quantileOf) {
  const { result } = await prometheus.ask('query', { query: selector });
  assert.equal(result.length, 1, selector);
  const { count, sum, buckets } = result[0].histogram[1];
  assert.equal(Number(count), values.length);
  assertClose(
    Number(sum),
    values.reduce((total, value) => total + value, 0),
    'sum',
  );
  let found = 0;
  for (const [rule, lower, upper, bucket] of buckets) {
    const [left, right] = [Number(lower), Number(upper)];
    const inside = values.filter(value => {
      if (Math.abs(value) <= ZERO_THRESHOLD) return left < 0 && right > 0;
      if (left < 0 && right > 0) return false;
      // 0: open left; 1: open right.
      return rule === 0 ? value > left && value <= right : value >= left && value < right;
    });
    assert.equal(Number(bucket), inside.length, `${selector} ${lower} to ${upper}`);
    found += inside.length;
  }
  assert.equal(found, values.length);
  for (const quantile of QUANTILES) {
    const theirs = await prometheus.number(`histogram_quantile(${quantile}, ${selector})`);
    assertClose(quantileOf(quantile), theirs, `${selector} quantile ${quantile}`);
  }
}

function assertClose(actual, expected, what) {
  const error = Math.abs(actual - expected);
  assert.ok(error <= 1e-9 * Math.abs(expected), `${what}: ${actual} is not ${expected}`);
}

/** A metric of each type. */
function metricsOf(registry) {
  const options = { help: 'h', labelNames: ['path'], registers: [registry] };
  const native = { nativeHistogramBucketFactor: 1.1, ...options };
  const metrics = {
    counter: new Counter({ name: 'requests_total', ...options }),
    gauge: new Gauge({ name: 'temperature', ...options }),
    summary: new Summary({ name: 'times', percentiles: [0.5, 1], ...options }),
    classic: new Histogram({ name: 'classic_seconds', buckets: [0.1, 1], ...options }),
    native: new Histogram({ name: 'native_seconds', buckets: [], enableExemplars: true, ...native }),
    both: new Histogram({ name: 'both_seconds', buckets: [0.1, 1], ...native }),
    idle: new Histogram({ name: 'idle_seconds', buckets: [], ...native, labelNames: [] }),
    unused: new Histogram({ name: 'unused_seconds', buckets: [], ...native }),
  };
  metrics.counter.inc({ path: 'a"b\\c\nd{}=,' }, 2.5);
  for (const [i, value] of [0, -1.5, NaN, Infinity, -Infinity, 5e-324].entries()) {
    metrics.gauge.set({ path: `ü${i}` }, value);
  }
  for (const value of VALUES) {
    for (const type of ['summary', 'classic', 'native', 'both']) metrics[type].observe({ path: '/' }, value);
  }
  return metrics;
}

describe('native histograms in Prometheus 3', { skip, timeout: 600_000 }, () => {
  const registry = new Registry();
  const stopDefaultMetrics = collectDefaultMetrics({ register: registry, runtime: true });
  const metrics = metricsOf(registry);
  const server = http.createServer(metricsHandler(registry));
  /** @type {PrometheusServer} */
  let prometheus;

  before(async () => {
    prometheus = await scraping(await listening(server), Object.keys(JOBS));
    await prometheus.numberWhen('min(count_over_time(up[1h]))', count => count >= 3, WITHIN_MS);
  });

  after(async () => {
    await prometheus?.stop();
    stopDefaultMetrics();
    server.close();
    server.closeAllConnections();
  });

  it('no scrape of a page with all types of metrics fails', async () => {
    assert.equal(await prometheus.number('min(min_over_time(up[1h]))'), 1);
    assert.equal(await prometheus.number('count(up)'), Object.keys(JOBS).length);
  });

  it('a native histogram has the count, the sum, the buckets and the quantiles that were observed', async () => {
    for (const [type, job] of [
      ['native', 'native'],
      ['both', 'native'],
      ['both', 'both'],
    ]) {
      const quantileOf = quantile => metrics[type].quantile(quantile, { path: '/' });
      await assertHas(prometheus, `${type}_seconds{job="${job}"}`, VALUES, quantileOf);
    }
    assert.equal(await prometheus.number('histogram_count(idle_seconds{job="native"})'), 0);
  });

  it('the queries of docs/native-histograms.md have data', async () => {
    const guide = fs.readFileSync(path.join(ROOT, 'docs/native-histograms.md'), 'utf8');
    const [, block] = /^```promql\n([^]*?)^```$/m.exec(guide);
    const queries = block.split(/^#.*\n/m).filter(query => query !== '');
    assert.equal(queries.length, 5);
    for (const query of queries) {
      const own = query
        .replaceAll('http_request_duration_seconds', 'both_seconds')
        .replaceAll('status', 'path');
      const found = await prometheus.query(own);
      assert.equal(found.length, 1, own);
    }
  });

  it('a series that is born between two scrapes counts from zero', async () => {
    metrics.counter.inc({ path: 'born' }, 5);
    metrics.native.observe({ path: 'born' }, 1);
    metrics.classic.observe({ path: 'born' }, 0.5);
    const born = '{job="native", path="born"}';
    await prometheus.numberWhen(`requests_total${born}`, value => value === 5, WITHIN_MS);
    for (const name of ['requests_total', 'classic_seconds_count', 'classic_seconds_bucket']) {
      const { result } = await prometheus.ask('query', { query: `${name}${born}[1h]` });
      for (const { values } of result) assert.equal(values[0][1], '0', name);
    }
    const { result } = await prometheus.ask('query', { query: `native_seconds${born}[1h]` });
    const shown = result[0].histograms.slice(0, 2).map(([, { count }]) => count);
    assert.deepEqual(shown, ['0', '1']);
  });
});
