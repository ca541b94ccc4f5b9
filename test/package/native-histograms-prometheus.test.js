'use strict';

// Debian's Prometheus 2.42 scrapes native histograms: with its flag it gets them, and has every bucket as it
// was recorded; without it gets text, and its scrapes succeed. Version 3 is in test/long/prometheus-3.

const assert = require('node:assert/strict');
const { createServer } = require('node:http');
const { once } = require('node:events');
const { after, before, describe, it } = require('node:test');
const { Counter, Gauge, Histogram, Registry, Summary, metricsHandler } = require('../..');
const { viewOf } = require('../../lib/registry/metric-view');
const { boundOf } = require('../../lib/series/native-index');
const { PrometheusServer, missingPrograms } = require('../fixtures/prometheus-server');

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['prometheus']);
const NATIVE = ['--enable-feature=native-histograms,exemplar-storage'];
const WITHIN_MS = 60_000;
const VALUES = Array.from({ length: 1000 }, (_, i) => ((i * 7919) % 1000) / 1000 + 0.001);
const quantile = 0.95;
const truth = [...VALUES].sort((a, b) => a - b)[VALUES.length * quantile - 1];

function countIn(registry) {
  const options = { help: 'h "\\\n', registers: [registry] };
  const native = { nativeHistogramBucketFactor: 1.1, labelNames: ['path'], ...options };
  const only = new Histogram({ name: 'only_native', buckets: [], ...native });
  const both = new Histogram({ name: 'both', buckets: [0.1, 0.5], enableExemplars: true, ...native });
  for (const value of VALUES) {
    only.observe({ path: 'é"\n' }, value);
    both.observe({ path: '/' }, value);
  }
  for (const value of [-5, -5.1, -1e300, 0, 0, 1e-200, 5e-324, 1e300, 65536])
    only.observe({ path: 'odd' }, value);
  only.zero({ path: 'empty' });
  both.observe({ labels: { path: '/' }, value: 0.3, exemplarLabels: { trace_id: 'a' } });
  new Histogram({ name: 'classic', buckets: [0.1, 0.5], ...options }).observe(0.3);
  new Counter({ name: 'jobs', ...options }).inc(3);
  new Gauge({ name: 'load', ...options }).set(-0.5);
  new Summary({ name: 'times', percentiles: [0.5], ...options }).observe(2);
  registry.registerMetric({
    name: 'custom',
    get: async () => ({
      name: 'custom',
      help: 'h',
      type: 'untyped',
      values: [{ value: 4, metricName: 'own_name' }],
    }),
  });
  return only;
}

/** A server of a registry, and what it has answered with. */
async function serve(registry) {
  const contentTypes = new Set();
  const handle = metricsHandler(registry);
  const server = createServer((request, response) => {
    response.on('finish', () => contentTypes.add(response.getHeader('content-type')));
    return handle(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { contentTypes, server, url: `http://127.0.0.1:${server.address().port}/metrics` };
}

/** The buckets of a row, as the API of Prometheus lists them. */
function bucketsOf(histogram, path) {
  const { table, buckets } = viewOf(histogram);
  const { schema, zeroThreshold, zeroCount, positive, negative } = buckets.read(table.find({ path }));
  const side = ({ indices, counts }) =>
    indices.map((index, i) => [boundOf(index - 1, schema), boundOf(index, schema), counts[i]]);
  const mirrored = side(negative).map(([low, high, count]) => [-high, -low, count]);
  const zero = zeroCount === 0 ? [] : [[-zeroThreshold, zeroThreshold, zeroCount]];
  return [...mirrored.reverse(), ...zero, ...side(positive)];
}

/** The same of an answer of its API, without those that are empty. */
function populated(buckets = []) {
  return buckets.map(([, ...numbers]) => numbers.map(Number)).filter(([, , count]) => count > 0);
}

for (const [flags, contentType] of [
  [NATIVE, Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE],
  [[], Registry.PROMETHEUS_CONTENT_TYPE],
]) {
  const isNative = flags.length > 0;
  describe(
    `Prometheus 2.42 ${isNative ? 'with' : 'without'} native histograms`,
    { skip, timeout: 120_000 },
    () => {
      let page;
      let only;
      let prometheus;

      before(async () => {
        const registry = new Registry();
        only = countIn(registry);
        page = await serve(registry);
        prometheus = await PrometheusServer.start(flags, page.url);
        await prometheus.numberWhen('sum_over_time(up[1h])', count => count >= 2, WITHIN_MS);
        prometheus.freeze();
      });

      after(async () => {
        await prometheus?.stop();
        page?.server.close();
      });

      it(`gets ${contentType}, and no scrape fails`, async () => {
        assert.deepEqual([...page.contentTypes], [contentType]);
        assert.equal(await prometheus.number('min_over_time(up[1h])'), 1);
      });

      it('has the other types', async () => {
        for (const [expression, value] of [
          ['jobs', 3],
          ['load', -0.5],
          ['times{quantile="0.5"}', 2],
          ['times_sum', 2],
          ['times_count', 1],
          ['own_name', 4],
          ['classic_bucket{le="0.1"}', 0],
          ['classic_bucket{le="+Inf"}', 1],
          ['classic_sum', 0.3],
        ]) {
          assert.equal(await prometheus.number(expression), value, expression);
        }
      });

      it(isNative ? 'has the sums, counts and quantiles' : 'has classic histograms', async () => {
        const [count, sum] = isNative
          ? ['histogram_count(both)', 'histogram_sum(both)']
          : ['both_count', 'both_sum'];
        const total = VALUES.reduce((all, value) => all + value, 0.3);
        assert.equal(await prometheus.number(count), VALUES.length + 1);
        assert.ok(Math.abs((await prometheus.number(sum)) - total) < 1e-9);
        const name = isNative ? 'both' : 'both_bucket';
        const estimated = await prometheus.number(`histogram_quantile(${quantile}, ${name})`);
        if (isNative) assert.ok(Math.abs(estimated / truth - 1) < 0.1, `${estimated} is not ${truth}`);
        assert.deepEqual(
          (await prometheus.query('both_bucket')).map(({ labels: { le }, value }) => [le, value]),
          isNative
            ? []
            : [
                ['+Inf', 1001],
                ['0.1', 100],
                ['0.5', 501],
              ],
        );
      });

      if (!isNative) return;

      it('has every bucket as it was recorded', async () => {
        const { result } = await prometheus.ask('query', { query: 'only_native' });
        assert.deepEqual(result.map(({ metric }) => metric.path).sort(), ['empty', 'odd', 'é"\n']);
        for (const { metric, histogram } of result) {
          const [, { buckets, count }] = histogram;
          const expected = bucketsOf(only, metric.path);
          assert.equal(
            Number(count),
            expected.reduce((sum, bucket) => sum + bucket[2], 0),
          );
          assert.deepEqual(populated(buckets), expected);
        }
      });

      it('has the exemplar', async () => {
        const [start, end] = [-600, 600].map(seconds => String(Date.now() / 1000 + seconds));
        const [{ exemplars }] = await prometheus.ask('query_exemplars', { query: 'both', start, end });
        const shown = exemplars.map(({ labels, value }) => [labels, value]);
        assert.deepEqual(shown, [[{ trace_id: 'a' }, '0.3']]);
      });
    },
  );
}
