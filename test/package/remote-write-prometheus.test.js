'use strict';

// The real Prometheus has what the page of the same instant says.

const assert = require('node:assert');
const { after, before, describe, it } = require('node:test');
const { Counter, Gauge, Histogram, Registry, RemoteWrite, Summary } = require('../..');
const { samples } = require('../../lib/testing/testing');
const { PrometheusServer, missingPrograms } = require('../fixtures/prometheus-server');

const required = process.env.REQUIRE_ALL === '1';
const labels = { instance: 'box-1', job: 'batch' };

const CASES = [
  // Debian's is version 2.42; test/long/prometheus-3 runs this file with version 3.
  { protocol: undefined, negotiated: process.env.PROMETHEUS ? '2.0' : '1.0' },
  { protocol: '1.0', negotiated: '1.0' },
];

/** Comparable samples: NaN is one number, and Prometheus leaves empty labels out. */
function asText({ name, labels: own, value }) {
  const pairs = Object.entries({ ...own, __name__: name }).filter(([, text]) => text !== '');
  return `${JSON.stringify(pairs.sort())} ${value}`;
}

for (const { protocol, negotiated } of CASES) {
  const skip = !required && missingPrograms(['prometheus']);
  describe(`remote write ${protocol ?? 'negotiated'} to Prometheus`, { skip, timeout: 120_000 }, () => {
    /** @type {PrometheusServer} */
    let prometheus;
    let registry;
    let push;

    before(async () => {
      prometheus = await PrometheusServer.startReceiver('exemplar-storage,native-histograms');
      registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
      push = new RemoteWrite(prometheus.writeUrl, { labels, protocol }, registry);
    });

    after(() => prometheus?.stop());

    const received = async () =>
      (await prometheus.query('{job="batch"}'))
        .map(({ labels: { __name__: name, ...own }, value }) => ({ name, labels: own, value }))
        .filter(({ name }) => !name.startsWith('prom_client_'));

    it('has the values of the page', async () => {
      const registers = [registry];
      const labelNames = ['path', 'Method'];
      const options = { help: 'h "\\\n', labelNames, registers };
      const counter = new Counter({ name: 'requests_total', enableExemplars: true, ...options });
      counter.inc({ labels: { path: 'a"b\\c\nd{}=,' }, value: 2, exemplarLabels: { trace_id: 'ü' } });
      counter.inc({ labels: { path: 'ü😀', Method: '' }, value: 0.1 });
      const gauge = new Gauge({ name: 'temperature', ...options });
      const numbers = [0, -1.5, NaN, Infinity, -Infinity, 5e-324, 1e300, 0.1 + 0.2];
      numbers.forEach((value, i) => gauge.set({ path: String(i) }, value));
      const histogram = new Histogram({ name: 'sizes', buckets: [0.1, 2.5], ...options });
      for (const value of [0.05, 0.5, 7]) histogram.observe({ Method: 'GET' }, value);
      new Summary({ name: 'times', percentiles: [0.5], ...options }).observe({}, 3);
      const result = await push.push();
      const page = await samples(registry);
      const expected = page.map(sample => asText({ ...sample, labels: { ...labels, ...sample.labels } }));
      assert.deepStrictEqual((await received()).map(asText).sort(), expected.sort());
      assert.deepStrictEqual([result.protocol, result.dropped], [negotiated, 0]);
    });

    it('has the exemplar', async () => {
      const start = String(Date.now() / 1000 - 60);
      const end = String(Date.now() / 1000 + 60);
      const [{ exemplars }] = await prometheus.ask('query_exemplars', {
        query: 'requests_total',
        start,
        end,
      });
      const found = exemplars.map(({ labels: own, value }) => [own, value]);
      assert.deepStrictEqual(found, [[{ trace_id: 'ü' }, '2']]);
    });

    const keepsNoTypes = negotiated !== '2.0' && 'the server keeps no types that come with version 1.0';
    it('has the types', { skip: keepsNoTypes }, async () => {
      const typed = await PrometheusServer.startReceiver('type-and-unit-labels');
      try {
        await new RemoteWrite(typed.writeUrl, { labels }, registry).push();
        for (const [name, type] of [
          ['requests_total', 'counter'],
          ['temperature', 'gauge'],
          ['sizes_bucket', 'histogram'],
          ['times_sum', 'summary'],
        ]) {
          const found = await typed.query(name);
          assert.deepStrictEqual([...new Set(found.map(sample => sample.labels.__type__))], [type], name);
        }
      } finally {
        await typed.stop();
      }
    });

    const knowsNoStarts = negotiated !== '2.0' && 'version 1.0 has no start timestamps';
    it('counts from zero what began between two pushes', { skip: knowsNoStarts }, async t => {
      const server = await PrometheusServer.startReceiver('created-timestamp-zero-ingestion');
      t.after(() => server.stop());
      const own = new Registry();
      const options = { help: 'h', nativeHistogramBucketFactor: 1.1, buckets: [], registers: [own] };
      new Gauge({ name: 'gauge', help: 'h', registers: [own] }).set(3);
      new Summary({ name: 'summary', help: 'h', percentiles: [0.5], registers: [own] }).observe(3);
      new Counter({ name: 'counter', help: 'h', registers: [own] }).inc(3);
      new Histogram({ name: 'native', ...options }).observe(3);
      // After the second in which they began.
      while (Date.now() % 1000 < 10);
      await new RemoteWrite(server.writeUrl, { labels, nativeHistograms: true }, own).push();
      for (const [name, expected] of [
        ['gauge', ['3']],
        ['summary', ['3']],
        ...['counter', 'summary_sum', 'native'].map(name => [name, ['0', '3']]),
      ]) {
        const [{ values, histograms }] = (await server.ask('query', { query: `${name}[5m]` })).result;
        const found = values ?? histograms.map(([time, { sum }]) => [time, sum]);
        const shown = found.map(([, value]) => value);
        assert.deepStrictEqual(shown, expected, name);
      }
    });

    it('has native histograms, beside classic ones if they have bounds, with exemplars, and until they end', async () => {
      const own = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
      const options = {
        help: 'h',
        nativeHistogramBucketFactor: 1.1,
        enableExemplars: true,
        registers: [own],
      };
      const names = ['native', 'both'];
      const metrics = [[], [1, 10]].map(
        (buckets, i) => new Histogram({ name: names[i], buckets, ...options }),
      );
      for (const metric of metrics) {
        for (let i = 0; i <= 1000; i++) metric.observe(i / 100);
        metric.observe(-5);
        for (const value of [7, 0.3]) {
          metric.observe({ value, exemplarLabels: { trace_id: String(value) } });
          // A server keeps one exemplar a millisecond of a series.
          for (const now = Date.now(); Date.now() === now;);
        }
      }
      const settings = { labels: { instance: 'box-3', job: 'native' }, protocol, nativeHistograms: true };
      const sender = new RemoteWrite(prometheus.writeUrl, settings, own);
      assert.strictEqual((await sender.push()).dropped, 0);
      for (const [expression, expected] of [
        ...names.flatMap(name => [
          [`histogram_count(${name})`, 1004],
          [`histogram_sum(${name})`, 5007.3],
          [`histogram_fraction(-Inf, -1, ${name})`, 1 / 1004],
        ]),
        ['both_bucket{le="10"}', 1004],
        ['both_bucket{le="1"}', 103],
        ['both_count', 1004],
        ['count({__name__=~"native.+"}) or vector(0)', 0],
      ])
        assert.ok(
          Math.abs((await prometheus.number(expression)) - expected) < 0.001 * (expected || 1),
          expression,
        );
      for (const name of names)
        assert.ok(Math.abs((await prometheus.number(`histogram_quantile(0.5, ${name})`)) - 5) < 0.25);
      const [start, end] = [-60, 60].map(seconds => String(Date.now() / 1000 + seconds));
      const found = await prometheus.ask('query_exemplars', { query: 'native', start, end });
      const shown = found.flatMap(({ exemplars }) => exemplars.map(({ labels: { trace_id: id } }) => id));
      assert.deepStrictEqual(shown, ['7', '0.3']);
      own.removeSingleMetric('native');
      await sender.push();
      assert.deepStrictEqual(
        await prometheus.ask('query', { query: 'native' }).then(({ result }) => result),
        [],
      );
      assert.strictEqual(await prometheus.number('histogram_count(both)'), 1004);
      await sender.stop();
      assert.deepStrictEqual(await prometheus.query('{job="native",__name__!~"prom.*"}'), []);
    });

    it('shows a removed series no longer, and none after stop()', async () => {
      registry.getSingleMetric('temperature').reset();
      await push.push();
      const names = new Set((await received()).map(({ name }) => name));
      assert.ok(names.has('sizes_count') && !names.has('temperature'), [...names].join());
      await push.stop();
      assert.deepStrictEqual(await prometheus.query('{job="batch"}'), []);
      assert.deepStrictEqual(
        await prometheus.query('count(last_over_time(temperature[1h]))').then(all => all[0].value),
        8,
      );
    });
  });
}
