'use strict';

// prom-client-cluster/testing

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const client = require('../..');
const promClient = require('prom-client');
const { assertMetrics, lint, samples } = require('prom-client-cluster/testing');

/** A registry with a counter of two series and a histogram. */
function exampleOf({ Registry, Counter, Histogram }, contentType) {
  const registry = new Registry(contentType);
  const common = { help: 'help', labelNames: ['path', 'code'], registers: [registry] };
  const counter = new Counter({ name: 'requests_total', ...common });
  counter.inc({ path: '/b', code: 200 }, 2);
  counter.inc({ path: 'a "quoted" \\ path}\n', code: 404 });
  new Histogram({ name: 'took_seconds', ...common, buckets: [0.5] }).observe({ path: '/b' }, 0.2);
  return registry;
}

const EXAMPLE = [
  { name: 'requests_total', labels: { path: '/b', code: '200' }, value: 2 },
  { name: 'requests_total', labels: { path: 'a "quoted" \\ path}\n', code: '404' }, value: 1 },
  { name: 'took_seconds_bucket', labels: { le: '0.5', path: '/b' }, value: 1 },
  { name: 'took_seconds_bucket', labels: { le: '+Inf', path: '/b' }, value: 1 },
  { name: 'took_seconds_sum', labels: { path: '/b' }, value: 0.2 },
  { name: 'took_seconds_count', labels: { path: '/b' }, value: 1 },
];

describe('samples()', () => {
  for (const [what, library, contentType] of [
    ['this package', client],
    ['prom-client', promClient],
    ['this package, as OpenMetrics', client, client.openMetricsContentType],
    ['this package, as protobuf', client, client.Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE],
  ]) {
    it(`samples() of a registry of ${what} are those that are scraped`, async () => {
      const registry = exampleOf(library, contentType);
      assert.deepEqual(await samples(registry), EXAMPLE);
      assert.deepEqual(await samples(registry, 'took_seconds'), EXAMPLE.slice(2));
      assert.deepEqual(await samples(registry, 'took_seconds_sum'), []);
      const page = await registry.metrics();
      if (typeof page === 'string') assert.deepEqual(await samples(page), EXAMPLE);
    });
  }

  it('samples() have default labels, exemplars left out, and all kinds of numbers', async () => {
    const registry = new client.Registry(client.openMetricsContentType);
    registry.setDefaultLabels({ zone: 'x' });
    const common = { help: 'h', registers: [registry] };
    const counter = new client.Counter({ name: 'a_total', enableExemplars: true, ...common });
    counter.inc({ value: 3, exemplarLabels: { trace: '} 7' } });
    for (const [name, value] of Object.entries({ b: Infinity, c: -Infinity, d: NaN, e: 1e-7, f: -0.5 }))
      new client.Gauge({ name, ...common }).set(value);
    const values = (await samples(registry)).map(({ name, labels, value }) => [name, labels.zone, value]);
    assert.deepEqual(values, [
      ...[
        ['a_total', 'x', 3],
        ['b', 'x', Infinity],
        ['c', 'x', -Infinity],
        ['d', 'x', NaN],
      ],
      ...[
        ['e', 'x', 1e-7],
        ['f', 'x', -0.5],
      ],
    ]);
  });

  it('samples() of a cluster are those of its page', async () => {
    const registry = {
      metrics: async () => 'own 1',
      clusterMetrics: async () => '# TYPE all gauge\nall 2\n',
    };
    assert.deepEqual(await samples(registry), [{ name: 'all', labels: {}, value: 2 }]);
    assert.deepEqual(await samples({ ...registry, clusterMetrics: async () => '' }), [
      { name: 'own', labels: {}, value: 1 },
    ]);
  });

  it('samples() need a registry or a page', async () => {
    await assert.rejects(samples(undefined), /^TypeError: expected a Registry, or the text of a page$/);
    await assert.rejects(samples(new client.Counter({ name: 'x', help: 'h', registers: [] })), TypeError);
    await assert.rejects(samples('<html>'), /^SyntaxError: This line is not a sample: <html>$/);
    for (const line of ['a', 'a{b="1"}', 'a 1O', 'a{b="1"}2x'])
      await assert.rejects(samples(line), /^SyntaxError: This line has no value: a/);
    await assert.rejects(samples('a{b=1} 1'), /^SyntaxError: The labels of this line cannot be read/);
  });
});

describe('assertMetrics()', () => {
  it('assertMetrics() ignores indentation, order, spelling of numbers, and HELP and TYPE that the text leaves out', async () => {
    const registry = exampleOf(client);
    await assertMetrics(registry, await registry.metrics());
    await assertMetrics(
      registry,
      `
      took_seconds_count{path="/b"} 1
      took_seconds_sum{path="/b"} 2e-1
      took_seconds_bucket{path="/b",le="+Inf"} 1.0
      took_seconds_bucket{path="/b",le="0.5"} 1
      # TYPE requests_total counter
      requests_total{code="404",path="a \\"quoted\\" \\\\ path}\\n"} 1
      requests_total{code="200",path="/b"} 2
    `,
    );
  });

  it('assertMetrics() compares all metrics, or those that are named', async () => {
    const registry = exampleOf(client);
    const [text] = (await registry.metrics()).split('\n\n');
    await assertMetrics(registry, text, 'requests_total');
    await assertMetrics(registry, text, ['requests_total', 'missing']);
    await assertMetrics(registry, '', ['missing']);
    await assert.rejects(assertMetrics(registry, text, 'request_total'), {
      name: 'AssertionError',
      message: "No metric has the name 'request_total'",
    });
    await assert.rejects(assertMetrics(registry, text), { name: 'AssertionError' });
    await assert.rejects(assertMetrics(registry, '', ['requests_total']), { name: 'AssertionError' });
  });

  it('assertMetrics() needs a text', async () => {
    await assert.rejects(assertMetrics(exampleOf(client)), /^TypeError: assertMetrics\(\) expected a text/);
  });

  it('assertMetrics() rejects with an AssertionError that shows the difference', async () => {
    const registry = exampleOf(client);
    for (const [found, given] of [
      ['requests_total{code="200",path="/b"} 2', 'requests_total{code="200",path="/b"} 3'],
      ['# HELP requests_total help', '# HELP requests_total other'],
      ['# TYPE requests_total counter', '# TYPE requests_total gauge'],
      ['took_seconds_sum{path="/b"} 0.2', 'took_seconds_sum{path="/b"} 0.3'],
    ]) {
      const text = (await registry.metrics())
        .replace('{path="/b",code="200"} 2', '{code="200",path="/b"} 2')
        .replace(found, given);
      await assert.rejects(assertMetrics(registry, text), error => {
        assert.ok(error instanceof assert.AssertionError);
        assert.match(error.message, /^Expected values to be strictly equal:\n\+ actual - expected/);
        assert.ok(error.actual.includes(found), error.actual);
        assert.ok(error.expected.includes(given), error.expected);
        return true;
      });
    }
  });
});

describe('lint()', () => {
  const NAMES = [
    ...['a_total', 'requests', 'x_seconds', 'x_milliseconds', 'x_minutes', 'foo_ms', 'foo_kb_total'],
    ...['x_bytes_total', 'x_kilobytes', 'x_bits', 'x_counter', 'x_gauge_y', 'x_histogram', 'x_summary'],
    ...['ns:foo', 'fooBar', 'x_kelvins', 'x_celsius', 'x_fahrenheit', 'x_d', 'x_megaseconds', 'micrograms'],
    ...['milli_seconds', 'x_S_total', 'days_since', 'x_created', 'A_Total', 'counter_x', 'x_gauge_histogram'],
    ...['y_bucket', 'y_sum', 'y_count'],
  ];
  const PAGES = ['counter', 'gauge', 'histogram', 'summary', 'untyped'].map(type => {
    const families = NAMES.filter(name => type !== 'summary' || !/^y_/.test(name)).map(name => {
      const samplesOf = {
        histogram: `${name}_bucket{le="+Inf"} 1\n${name}_sum 1\n${name}_count 1`,
        summary: `${name}{quantile="0.5"} 1\n${name}_sum 1\n${name}_count 1`,
      };
      const help = name === 'requests' ? '' : `# HELP ${name} help\n`;
      return `${help}# TYPE ${name} ${type}\n${samplesOf[type] ?? `${name}{aB="x"} 1`}\n`;
    });
    return { type, page: families.join('') };
  });
  PAGES.push({
    type: 'labels',
    page: '# HELP a h\n# TYPE a gauge\na{le="1"} 1\n# HELP b h\n# TYPE b gauge\nb{quantile="1"} 1\n',
  });

  const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
  const skip = !hasPromtool && process.env.REQUIRE_ALL !== '1' && 'promtool is missing';
  for (const { type, page } of PAGES) {
    it(`lint() finds what promtool finds: ${type}`, { skip }, async () => {
      const { stderr } = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
      const found = (await lint(page)).map(({ metric, text }) => `${metric} ${text}`);
      assert.deepEqual(found, stderr.trim().split('\n'));
    });
  }

  it('lint() finds nothing in a good page, and names counters of OpenMetrics with _total', async () => {
    assert.deepEqual(await lint(exampleOf(client)), []);
    assert.deepEqual(await lint(exampleOf(client, client.openMetricsContentType)), []);
  });

  it('lint() objects to none of the default metrics that promtool accepts', async () => {
    const register = new client.Registry();
    const stop = client.collectDefaultMetrics({ register, runtime: true });
    const problems = await lint(register);
    stop();
    const shown = problems.filter(({ text }) => !/_total/.test(text));
    assert.deepEqual(shown, []);
  });
});
