'use strict';

// Prometheus scrapes the demo's cluster under load. What it says afterwards is what the workers recorded.

const assert = require('node:assert');
const { after, before, describe, it } = require('node:test');
const { ClusterProcess } = require('../../example/demo/cluster-process');
const { LoadGenerator } = require('../../example/demo/load-generator');
const { PrometheusServer, missingPrograms, promtoolCheckMetrics } = require('../fixtures/prometheus-server');

const SCRAPES = 4;
const RATE = 100;
const LOADS = 2;
const AMOUNT = 200; // two seconds long
const WITHIN_MS = 300_000;

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['prometheus', 'promtool']);

describe('a cluster under load, scraped by Prometheus every second', { skip }, () => {
  let cluster;
  let loadGenerator;
  let prometheus;
  let recorded;

  before(async () => {
    assert.strictEqual(missingPrograms(['prometheus', 'promtool']), undefined);
    cluster = new ClusterProcess({ client: 'prom-client-cluster', workers: 2, samples: 2000 });
    await cluster.ready();
    prometheus = await PrometheusServer.start([], cluster.metricsUrl);
    loadGenerator = new LoadGenerator();
    for (let load = 1; load <= LOADS; load++) {
      const { done } = loadGenerator.start({ url: cluster.applicationUrl, rate: RATE, amount: AMOUNT });
      assert.deepStrictEqual(await done, { sent: AMOUNT, answered: AMOUNT, errors: 0, timeouts: 0 });
      // Prometheus sees each load before the next begins.
      await prometheus.numberWhen('sum(demo_requests_total)', count => count === load * AMOUNT, WITHIN_MS);
    }
    recorded = await recordOfHandledRequests(cluster);
    await prometheus.numberWhen('sum_over_time(up[1h])', count => count >= SCRAPES, WITHIN_MS);
    // The last series that a request changes.
    await prometheus.numberWhen(
      'sum(http_response_size_bytes_count)',
      count => count === recorded.arrived,
      WITHIN_MS,
    );
    await prometheus.numberWhen(
      'sum(http_request_duration_seconds_count)',
      count => count === total(recorded.durations),
      WITHIN_MS,
    );
    prometheus.freeze();
  });

  after(async () => {
    await loadGenerator?.stop();
    await prometheus?.stop();
    await cluster?.stop();
  });

  // A sum of seconds that is rounded differently at every scrape looks to Prometheus as if a process had
  // restarted.
  for (const name of [
    'demo_requests_total',
    'http_request_duration_seconds_bucket',
    'http_request_duration_seconds_sum',
  ]) {
    it(`Prometheus has never seen ${name} fall`, async () => {
      assert.strictEqual(await prometheus.number(`sum(resets(${name}[1h]))`), 0);
    });
  }

  it('Prometheus has the sums of histograms that were recorded', async () => {
    // Whole bytes add up exactly in any order; seconds do not, and are compared to within their rounding.
    assert.strictEqual(await prometheus.number('sum(http_response_size_bytes_sum)'), recorded.sizes.sum);
    assertClose(await prometheus.number('sum(http_request_duration_seconds_sum)'), recorded.durations.sum);
  });

  for (const { name, record } of [
    { name: 'http_response_size_bytes', record: () => recorded.sizes },
    { name: 'http_request_duration_seconds', record: () => recorded.durations },
  ]) {
    it(`Prometheus has the bucket counts of ${name} that were recorded`, async () => {
      const buckets = await prometheus.query(`sum by (le) (${name}_bucket)`);
      const counts = Object.fromEntries(buckets.map(({ labels, value }) => [boundOf(labels.le), value]));
      assert.deepStrictEqual(counts, cumulativeCounts(record()));
    });
  }

  it('promtool check metrics accepts the page of the cluster without a remark', async () => {
    assert.deepStrictEqual(await promtoolCheckMetrics(await expositionText(cluster)), {
      exitCode: 0,
      output: '',
    });
  });
});

/** A response's end is recorded a moment after the load generator has it. */
async function recordOfHandledRequests(cluster) {
  for (;;) {
    const record = await cluster.record();
    if (total(record.sizes) === record.arrived) return record;
  }
}

async function expositionText(cluster) {
  const response = await fetch(cluster.metricsUrl, { headers: { accept: 'text/plain;version=0.0.4' } });
  assert.strictEqual(response.status, 200);
  return response.text();
}

function boundOf(le) {
  return le === '+Inf' ? Infinity : Number(le);
}

function total({ counts }) {
  return counts.reduce((sum, count) => sum + count, 0);
}

function cumulativeCounts({ bounds, counts }) {
  let cumulative = 0;
  return Object.fromEntries(
    [...bounds, Infinity].map((bound, bucket) => [bound, (cumulative += counts[bucket])]),
  );
}

function assertClose(actual, expected) {
  const error = Math.abs(actual - expected) / Math.abs(expected);
  assert.ok(error < 1e-9, `${actual} is not ${expected}`);
}
