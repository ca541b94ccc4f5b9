'use strict';

// What all endpoints have in common: the choice of a format, the choice of metrics, and failures.

const { after, before, describe, it, test } = require('node:test');
const assert = require('node:assert');
const {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  Registry,
  metricsHandler,
  metricsResponse,
} = require('../..');
const { withFacts } = require('../../lib/exposition/page-bytes');
const { familiesOf } = require('../fixtures/protobuf-page');

const {
  PROMETHEUS_CONTENT_TYPE: TEXT,
  OPENMETRICS_CONTENT_TYPE: OPENMETRICS,
  PROMETHEUS_PROTOBUF_CONTENT_TYPE: PROTOBUF,
} = Registry;
const BOTH = ['text', 'openmetrics'];
const ALL = ['text', 'openmetrics', 'protobuf'];

// What Prometheus sends, by version.
const PROMETHEUS_2_42 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';
const PROMETHEUS_3_TEXT_FIRST =
  'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,*/*;q=0.2';
// With native histograms.
const FAMILIES = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited';
const NATIVE_PROMETHEUS = {
  2.42: `${FAMILIES},application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
  '3.0': `${FAMILIES};escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;escaping=allow-utf-8;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;escaping=allow-utf-8;q=0.2,*/*;q=0.1`,
  3.15: `${FAMILIES};escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=2.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1`,
};
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';

/** A registry with a counter whose name both formats share. */
function smallRegistry(contentType) {
  const registry = new Registry(contentType);
  for (const name of ['a_total', 'b_total']) new Counter({ name, help: name, registers: [registry] }).inc();
  return registry;
}

/** The response to a scrape, by way of the Fetch standard. */
async function scrape(registry, { headers = {}, query = '', ...options } = {}) {
  const response = await metricsResponse(
    registry,
    new Request(`http://localhost/metrics${query}`, { headers }),
    options,
  );
  return {
    status: response.status,
    contentType: response.headers.get('content-type'),
    vary: response.headers.get('vary'),
    text: await response.text(),
  };
}

// The first test, because formats apply to the whole process.
it('exemplars need a format that has them, of any endpoint, and are shown in such formats only', async () => {
  const observed = (registry, others = {}) => {
    const options = { name: 'd_seconds', help: 'h', buckets: [1], enableExemplars: true };
    const histogram = new Histogram({ ...options, ...others, registers: [registry] });
    histogram.observe({ value: 0.5, exemplarLabels: { trace_id: 'x' } });
    return registry;
  };
  const registry = new Registry();
  const native = observed(new Registry(), { nativeHistogramBucketFactor: 2 });
  for (const formats of [undefined, ['text']]) {
    metricsHandler(registry, { formats });
    assert.throws(
      () => observed(registry),
      /^TypeError: Exemplars are supported only on OpenMetrics registries$/,
    );
  }
  metricsHandler(new Registry(), { formats: BOTH });
  for (const each of [observed(registry), native, observed(new Registry(OPENMETRICS))]) {
    const page = async accept => (await scrape(each, { headers: { accept }, formats: ALL })).text;
    assert.match(await page('text/plain'), /^d_seconds_bucket\{le="1"\} 1$/m);
    assert.match(await page(PROMETHEUS_2), /^d_seconds_bucket\{le="1"\} 1 # \{trace_id="x"\} 0\.5 [\d.]+$/m);
    assert.match(await page(FAMILIES), /trace_id/);
  }
  assert.doesNotMatch(await registry.metrics(), /trace_id/);
  assert.match((await scrape(native, { headers: { accept: FAMILIES } })).text, /trace_id/);
});

describe('formats', () => {
  it('Accept chooses the format', async () => {
    for (const [accept, formats, expected] of [
      [undefined, BOTH, TEXT],
      ['', BOTH, TEXT],
      ['*/*', BOTH, TEXT],
      [undefined, ['openmetrics', 'text'], OPENMETRICS],
      ['*/*', ['openmetrics', 'text'], OPENMETRICS],
      [PROMETHEUS_2_42, BOTH, OPENMETRICS],
      [PROMETHEUS_2, BOTH, OPENMETRICS],
      [PROMETHEUS_2, ['text'], TEXT],
      [PROMETHEUS_3, BOTH, OPENMETRICS],
      [PROMETHEUS_3_TEXT_FIRST, BOTH, TEXT],
      [PROMETHEUS_3_TEXT_FIRST, ['openmetrics'], OPENMETRICS],
      [BROWSER, BOTH, TEXT],
      [BROWSER, ['openmetrics', 'text'], OPENMETRICS],
      ['application/openmetrics-text', BOTH, OPENMETRICS],
      ['APPLICATION/OpenMetrics-Text; Version="1.0.0"', BOTH, OPENMETRICS],
      ['application/*', BOTH, OPENMETRICS],
      ['application/*, text/plain', BOTH, TEXT],
      ['text/plain;q=0.1, application/*;q=0.2', BOTH, OPENMETRICS],
      // A version that is not served.
      ['application/openmetrics-text;version=0.0.1, text/plain;q=0.1', BOTH, TEXT],
      ['application/openmetrics-text;version=2.0.0', BOTH, TEXT],
      // The most specific range counts.
      ['text/plain;q=0, */*', BOTH, OPENMETRICS],
      ['*/*, text/*;q=0.5', BOTH, OPENMETRICS],
      ['text/plain;version=0.0.4;q=0.1, text/plain, application/openmetrics-text;q=0.5', BOTH, OPENMETRICS],
      // Nothing is accepted.
      ['image/png', BOTH, TEXT],
      ['*/*;q=0', BOTH, TEXT],
      ['application/openmetrics-text;q=nonsense', BOTH, TEXT],
      [',;,=;q=1,', BOTH, TEXT],
    ]) {
      const headers = accept === undefined ? {} : { accept };
      const { status, contentType, text } = await scrape(smallRegistry(), { headers, formats });
      assert.deepStrictEqual([status, contentType], [200, expected], `${accept} of ${formats}`);
      assert.strictEqual(text.endsWith('# EOF\n'), expected === OPENMETRICS);
    }
  });

  it('only a scraper that prefers protobuf to everything else that is served gets it, others the text they prefer', async () => {
    for (const [accept, formats, expected] of [
      ...Object.values(NATIVE_PROMETHEUS).map(header => [header, ALL, PROTOBUF]),
      [NATIVE_PROMETHEUS['2.42'], ['protobuf', 'text'], PROTOBUF],
      [NATIVE_PROMETHEUS['2.42'], BOTH, OPENMETRICS],
      [NATIVE_PROMETHEUS['2.42'], ['text'], TEXT],
      ...[undefined, '', '*/*', BROWSER, 'application/*', 'text/plain', 'text/plain;q=0.1, */*'].flatMap(
        accept => [
          [accept, ['protobuf', 'text'], TEXT],
          [accept, ['text', 'protobuf'], TEXT],
        ],
      ),
      ...[PROMETHEUS_2_42, PROMETHEUS_2, PROMETHEUS_3].map(header => [header, ALL, OPENMETRICS]),
      [PROMETHEUS_3_TEXT_FIRST, ALL, TEXT],
      // Nothing else is accepted.
      [FAMILIES, ALL, PROTOBUF],
      [`${FAMILIES};q=0.001`, ALL, PROTOBUF],
      [`${FAMILIES};q=0`, ALL, TEXT],
      // Something else is accepted as well.
      [`${FAMILIES};q=0.5, text/plain;q=0.5`, ALL, TEXT],
      [`${FAMILIES};q=0.5, text/plain;q=0.6`, ALL, TEXT],
      [`${FAMILIES};q=0.5, */*;q=0.6`, ALL, TEXT],
      [`${FAMILIES};q=0.5, application/openmetrics-text;q=0.6`, ['text', 'protobuf'], PROTOBUF],
      // By name, and with these parameters.
      [
        'Application/VND.google.protobuf; Encoding="delimited"; x="a"; proto="io.prometheus.client.MetricFamily"',
        ALL,
        PROTOBUF,
      ],
      [`${FAMILIES};escaping=allow-utf-8;version=9`, ALL, PROTOBUF],
      [`${FAMILIES.replace('delimited', 'text')}, text/plain;q=0.1`, ALL, TEXT],
      [`${FAMILIES.replace('delimited', 'compact-text')}, text/plain;q=0.1`, ALL, TEXT],
      [`${FAMILIES.replace('MetricFamily', 'Other')}, text/plain;q=0.1`, ALL, TEXT],
      ['application/vnd.google.protobuf, text/plain;q=0.1', ALL, TEXT],
      ['application/vnd.google.protobuf;encoding=delimited', ALL, TEXT],
      ['application/protobuf', ALL, TEXT],
      [`"${FAMILIES}`, ALL, TEXT],
      // Version 1.0.0 of Prometheus text is read by those that ask for it. Unknown parameters do not matter.
      ['text/plain;version=1.0.0;q=0.9, application/openmetrics-text;q=0.5', ALL, TEXT],
      ['text/plain;escaping=underscores;version="1.0.0", application/openmetrics-text;q=0.5', ALL, TEXT],
      ['application/openmetrics-text;version=1.0.0;escaping=dots;x, text/plain;q=0.5', ALL, OPENMETRICS],
      [
        'text/plain;version=1.0.0;q=0.9, text/plain;version=0.0.4;q=0.1, application/openmetrics-text;q=0.5',
        ALL,
        OPENMETRICS,
      ],
      // The only format, as with all others.
      [undefined, ['protobuf'], PROTOBUF],
    ]) {
      const headers = accept === undefined ? {} : { accept };
      const { status, contentType } = await scrape(smallRegistry(), { headers, formats });
      assert.deepStrictEqual([status, contentType], [200, expected], `${accept} of ${formats}`);
    }
  });

  it('native histograms are served to a scraper that prefers protobuf, unless formats were set', async () => {
    const headers = { accept: NATIVE_PROMETHEUS['3.0'] };
    for (const [isNative, change, options, expected] of [
      [false, () => {}, {}, TEXT],
      [true, () => {}, {}, PROTOBUF],
      [true, registry => registry.setFormats(['text']), {}, TEXT],
      [true, registry => registry.setFormats(BOTH), {}, OPENMETRICS],
      [true, () => {}, { formats: ['text'] }, TEXT],
      [false, registry => registry.setFormats(['text', 'protobuf']), {}, PROTOBUF],
      [false, registry => registry.setContentType(PROTOBUF), {}, PROTOBUF],
      [true, registry => registry.setContentType(OPENMETRICS), {}, PROTOBUF],
      [true, registry => registry.removeSingleMetric('native'), {}, TEXT],
    ]) {
      const registry = smallRegistry();
      const native = { nativeHistogramBucketFactor: 1.1, buckets: [], enableExemplars: true };
      if (isNative) new Histogram({ name: 'native', help: 'h', registers: [registry], ...native });
      change(registry);
      const { contentType, vary } = await scrape(registry, { headers, ...options });
      assert.strictEqual(contentType, expected, String(change));
      const other = await scrape(registry, options);
      assert.strictEqual(other.vary, vary);
      assert.strictEqual(vary.startsWith('Accept, '), other.contentType !== contentType, String(change));
      const merged = await scrape(Registry.merge([registry]), { headers, ...options });
      assert.strictEqual(merged.contentType, expected, String(change));
    }
  });

  it('a registry is served in its own format without the option', async () => {
    for (const contentType of [TEXT, OPENMETRICS]) {
      const registry = smallRegistry(contentType);
      for (const accept of [PROMETHEUS_2, 'text/plain']) {
        const response = await scrape(registry, { headers: { accept } });
        assert.deepStrictEqual([response.contentType, response.vary], [contentType, 'Accept-Encoding']);
        assert.strictEqual(response.text, await registry.metrics());
      }
    }
  });

  it('setFormats() of a registry sets those of its endpoints, but not that of metrics()', async () => {
    const registry = smallRegistry();
    const text = await registry.metrics();
    registry.setFormats(BOTH);
    const openMetrics = await scrape(registry, { headers: { accept: PROMETHEUS_2 } });
    assert.deepStrictEqual(
      [openMetrics.contentType, openMetrics.vary],
      [OPENMETRICS, 'Accept, Accept-Encoding'],
    );
    assert.match(openMetrics.text, /# EOF\n$/);
    const plain = await scrape(registry);
    assert.deepStrictEqual([plain.contentType, plain.text], [TEXT, text]);
    assert.deepStrictEqual([registry.contentType, await registry.metrics()], [TEXT, text]);
    // The option of an endpoint comes first.
    const own = await scrape(registry, { headers: { accept: PROMETHEUS_2 }, formats: ['text'] });
    assert.strictEqual(own.contentType, TEXT);
    const merged = Registry.merge([new Registry(), registry]);
    assert.strictEqual(
      (await scrape(merged, { headers: { accept: PROMETHEUS_2 } })).contentType,
      OPENMETRICS,
    );
    registry.setFormats(['openmetrics', 'text', 'openmetrics']);
    assert.strictEqual((await scrape(registry)).contentType, OPENMETRICS);
    registry.clear();
    smallRegistry()
      .getMetricsAsArray()
      .forEach(metric => registry.registerMetric(metric));
    assert.strictEqual((await scrape(registry)).contentType, OPENMETRICS);
    registry.setFormats(['text']);
    assert.strictEqual((await scrape(registry, { headers: { accept: PROMETHEUS_2 } })).contentType, TEXT);
  });

  it('setFormats() changes an endpoint that exists', async () => {
    const registry = smallRegistry();
    const shown = [];
    const res = { setHeader: (name, value) => shown.push([name, value]), getHeader() {}, end() {} };
    const handler = metricsHandler(registry);
    registry.setFormats(BOTH);
    await handler({ headers: { accept: PROMETHEUS_2 } }, res);
    assert.deepStrictEqual(shown[0], ['Content-Type', OPENMETRICS]);
  });

  it('formats have to be a list of known ones, for an endpoint as for setFormats()', () => {
    const refused = {
      name: 'TypeError',
      message: /^formats must be a list of 'text', 'openmetrics', 'protobuf': /,
    };
    for (const formats of [[], ['json'], ['text', undefined], 'text', {}, 5]) {
      assert.throws(() => metricsHandler(smallRegistry(), { formats }), refused);
      assert.throws(() => new Registry().setFormats(formats), refused);
    }
    metricsHandler(smallRegistry(), { formats: null });
    for (const formats of [undefined, null]) assert.throws(() => new Registry().setFormats(formats), refused);
  });

  it('a registry that renders itself is served in its own format', async () => {
    const registry = smallRegistry();
    registry.metrics = async () => 'own 1\n';
    const duck = { contentType: TEXT, metrics: () => 'own 1\n' };
    for (const each of [registry, duck]) {
      const { contentType, text } = await scrape(each, { headers: { accept: PROMETHEUS_2 }, formats: BOTH });
      assert.deepStrictEqual([contentType, text], [TEXT, 'own 1\n']);
    }
    assert.deepStrictEqual(Reflect.ownKeys(duck), ['contentType', 'metrics']);
  });

  it('concurrent scrapes in several formats run the collect hooks once', async () => {
    const registry = smallRegistry();
    let runs = 0;
    new Gauge({ name: 'runs', help: 'h', registers: [registry], collect: () => void runs++ });
    const first = scrape(registry);
    const others = [
      scrape(registry, { headers: { accept: PROMETHEUS_2 }, formats: BOTH }),
      scrape(registry, { headers: { 'accept-encoding': 'gzip' } }),
      scrape(registry, { query: '?name[]=a_total' }),
      scrape(registry, { query: '?name[]=b_total' }),
    ];
    await Promise.all([first, ...others]);
    assert.strictEqual(runs, 1);
  });
});

describe('a page of some metrics', () => {
  const namesIn = text => Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name);

  it('name[] chooses metrics', async () => {
    for (const [query, expected] of [
      ['?name[]=a_total', ['a_total']],
      ['?name%5B%5D=a_total', ['a_total']],
      ['?x=1&name[]=b_total&name[]=a_total&name[]=none', ['a_total', 'b_total']],
      ['?name[]=none', []],
      ['?name[]=', []],
      ['?name=a_total', ['a_total', 'b_total']],
      ['?', ['a_total', 'b_total']],
      ['?name[]=a_total#name[]=b_total', ['a_total']],
      ['?name[]=__proto__', []],
      ['?name[]=%ff', []],
    ]) {
      const { status, text } = await scrape(smallRegistry(), { query });
      assert.strictEqual(status, 200);
      assert.deepStrictEqual(namesIn(text), expected, query);
    }
  });

  it('a metric has the same name in both formats', async () => {
    const { text } = await scrape(smallRegistry(), { query: '?name[]=a_total', formats: ['openmetrics'] });
    assert.strictEqual(text, '# HELP a a_total\n# TYPE a counter\na_total 1\n# EOF\n');
  });

  it('concurrent scrapes have at most ten selections; all others are served', async () => {
    const registry = smallRegistry();
    const errors = [];
    const ask = query => scrape(registry, { query, onError: error => errors.push(error) });
    const queries = ['', ...Array.from({ length: 12 }, (_, i) => `?name[]=a_total&name[]=${i}`)];
    const answers = await Promise.all([...queries, '?name[]=0&name[]=a_total&name[]=0', ''].map(ask));
    const shown = answers.map(({ status }) => status);
    assert.deepStrictEqual(shown, [...Array.from({ length: 11 }, () => 200), 503, 503, 200, 200]);
    assert.strictEqual(answers[11].text, 'There are too many scrapes of different metrics at the moment.\n');
    assert.strictEqual(errors.length, 2);
    assert.strictEqual((await ask(queries[12])).status, 200);
  });

  it('all collect hooks run, because one may update several metrics', async () => {
    const registry = smallRegistry();
    const gauge = new Gauge({ name: 'g', help: 'h', registers: [registry] });
    registry.getSingleMetric('a_total').collect = () => gauge.set(7);
    assert.match((await scrape(registry, { query: '?name[]=g' })).text, /^g 7$/m);
  });
});

describe('a scrape that fails', () => {
  const failing = error => ({ contentType: TEXT, metrics: () => Promise.reject(error) });

  it('onError gets the error', async () => {
    const error = new Error('secret');
    const errors = [];
    const { status, text } = await scrape(failing(error), { onError: each => errors.push(each) });
    assert.deepStrictEqual([status, text], [500, 'Metrics are not available.\n']);
    assert.deepStrictEqual(errors, [error]);
  });

  it('onError gets an error of writing the response, which is destroyed', async () => {
    const errors = [];
    const error = new Error('broken');
    let destroyed = 0;
    const res = { setHeader() {}, getHeader() {}, destroy: () => destroyed++ };
    res.end = () => {
      res.headersSent = true;
      throw error;
    };
    await metricsHandler(smallRegistry(), { onError: each => errors.push(each) })({ headers: {} }, res);
    assert.deepStrictEqual(errors, [error]);
    assert.strictEqual(destroyed, 1);
  });

  it('an onError that throws, rejects or hangs has no effect', async () => {
    for (const onError of [
      () => {
        throw new Error('of onError');
      },
      () => Promise.reject(new Error('of onError')),
      () => new Promise(() => {}),
    ]) {
      assert.strictEqual((await scrape(failing(new Error('x')), { onError })).status, 500);
    }
  });

  it('onError hears of collect hooks of other processes that fail, once in ten minutes for a metric', async t => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const errors = [];
    const onError = error => errors.push(error);
    let failures;
    const registry = {
      contentType: TEXT,
      metrics() {},
      clusterMetricsBytes: async () => withFacts(Buffer.from('a 1\n'), { hookFailures: failures }),
    };
    const handler = metricsHandler(registry, { onError });
    const [a, b] = [
      ['a', 2],
      ['b', 7],
    ];
    const many = Array.from({ length: 12 }, (_, i) => [`m${i}`, 1]);
    for (const [at, counts, heard] of [
      [0, undefined, []],
      [0, [['a', 1]], ['a']],
      [599_999, [a, b], ['b']],
      // None has failed since.
      [600_000, [a, b], []],
      [600_000, [['a', 3], b], ['a']],
      // Another process aggregates, and has counted anew.
      [1_200_000, [['a', 0]], []],
      [1_200_000, [['a', 1]], ['a']],
      [1_200_000, many, ['m0, m1, m10, m11, m2, m3, m4, m5, m6, m7, …']],
    ]) {
      [now, failures] = [at, counts];
      errors.length = 0;
      await handler(
        { headers: {} },
        { setHeader() {}, getHeader() {}, end: body => assert.ok(body.length > 0) },
      );
      assert.ok(errors.every(({ code }) => code === 'PROM_CLIENT_CLUSTER_COLLECT'));
      const shown = errors.map(({ message }) => message.replace(/^The page .* failed: /, ''));
      assert.deepStrictEqual(shown, heard);
    }
  });

  it('onError has to be a function', () => {
    assert.throws(() => metricsHandler(smallRegistry(), { onError: 'log' }), {
      name: 'TypeError',
      message: "onError must be a function: 'log'",
    });
  });

  it('timers may be numbers, as those of jsdom are', async t => {
    const callbacks = [];
    t.mock.method(globalThis, 'setTimeout', callback => callbacks.push(callback));
    t.mock.method(process, 'emitWarning', () => {});
    const [page, failed] = await Promise.all([scrape(smallRegistry()), scrape(failing(new Error('x')))]);
    assert.deepStrictEqual([page.status, failed.status], [200, 500]);
    assert.ok(callbacks.length > 0);
    for (const callback of callbacks) callback();
  });

  it('a warning names the error, once a minute', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const warnings = [];
    t.mock.method(process, 'emitWarning', (message, { code }) => warnings.push([message, code]));
    // The tests before this one may have caused a warning.
    t.mock.timers.tick(60_000);
    const fail = message => scrape(failing(new Error(message)));
    await fail('first\nof two lines');
    await fail('second');
    t.mock.timers.tick(59_999);
    await fail('third');
    t.mock.timers.tick(1);
    await fail('fourth');
    const expected = ['first', 'fourth'].map(text => [
      `A scrape of the metrics failed: ${text}`,
      'PROM_CLIENT_CLUSTER_SCRAPE',
    ]);
    assert.deepStrictEqual(warnings, expected);
  });
});

describe('a process that is in no cluster', () => {
  let aggregator;
  before(() => (aggregator = new AggregatorRegistry()));
  after(async () => {
    AggregatorRegistry.setRegistries(Registry.globalRegistry);
    await aggregator.close();
  });

  it('an AggregatorRegistry shows the registries of the process', async () => {
    const registry = smallRegistry();
    registry.setDefaultLabels({ app: 'shop' });
    AggregatorRegistry.setRegistries([registry]);
    assert.strictEqual(await aggregator.clusterMetrics(), await registry.metrics());
    const { status, text } = await scrape(aggregator);
    assert.deepStrictEqual([status, text], [200, await registry.metrics()]);
    const some = await scrape(aggregator, {
      query: '?name[]=b_total',
      headers: { accept: PROMETHEUS_2, 'accept-encoding': 'gzip' },
      formats: BOTH,
    });
    assert.strictEqual(some.contentType, OPENMETRICS);
    assert.strictEqual((await aggregator.clusterMetricsBytes({ gzip: true }))[0], 0x1f);
    const native = { nativeHistogramBucketFactor: 1.1, registers: [registry] };
    new Histogram({ name: 'native', help: 'h', ...native });
    const protobuf = await scrape(aggregator, { headers: { accept: NATIVE_PROMETHEUS['2.42'] } });
    assert.deepStrictEqual([protobuf.contentType, protobuf.vary], [PROTOBUF, 'Accept, Accept-Encoding']);
    assert.strictEqual(aggregator.clusterState().aggregator, 'none', 'no thread was started');
  });

  it('several registries are shown together, each with its default labels', async () => {
    const [one, other] = [smallRegistry(), new Registry()];
    one.setDefaultLabels({ of: 'one' });
    other.setDefaultLabels({ of: 'other' });
    new Gauge({ name: 'g', help: 'h', registers: [other] }).set(1);
    new Gauge({ name: 'own', help: 'h', registers: [aggregator] }).set(2);
    AggregatorRegistry.setRegistries([one, other]);
    const samples = (await aggregator.clusterMetrics()).split('\n').filter(line => /^\w/.test(line));
    const expected = ['own 2', 'a_total{of="one"} 1', 'b_total{of="one"} 1', 'g{of="other"} 1'];
    assert.deepStrictEqual(samples, expected);
    // Two registries may have metrics of one name: they are added up as in a cluster.
    new Counter({ name: 'a_total', help: 'a_total', registers: [other] }).inc(5);
    one.setDefaultLabels({});
    other.setDefaultLabels({});
    assert.match(await aggregator.clusterMetrics(), /^a_total 6$/m);
    // Also then, a native histogram is one.
    const native = { nativeHistogramBucketFactor: 2, buckets: [1] };
    for (const registry of [one, other])
      new Histogram({ name: 'native', help: 'h', registers: [registry], ...native }).observe(3);
    assert.match(await aggregator.clusterMetrics(), /^native_bucket\{le="1"\} 0$/m);
    const headers = { accept: NATIVE_PROMETHEUS['2.42'] };
    const response = await metricsResponse(aggregator, new Request('http://localhost', { headers }));
    const families = familiesOf(Buffer.from(await response.arrayBuffer()));
    const [{ type, metric }] = families.filter(({ name }) => name.startsWith('native'));
    assert.strictEqual(type, 'HISTOGRAM');
    const { count, sum, bucket, positiveDelta, start } = metric[0].histogram;
    assert.deepStrictEqual([count, sum, bucket, positiveDelta], [2, 6, [{ count: 0, bound: 1 }], [2]]);
    assert.ok(start > 0);
    aggregator.clear();
  });

  it('an AggregatorRegistry of a single process answers with status 503 if it has no metrics, 500 if a collect hook fails', async () => {
    AggregatorRegistry.setRegistries([new Registry()]);
    assert.strictEqual(await aggregator.clusterMetrics(), '');
    assert.deepStrictEqual(await aggregator.clusterMetricsBytes(), Buffer.alloc(0));
    const onError = () => {};
    const { status, text } = await scrape(aggregator, { onError });
    assert.deepStrictEqual(
      [status, text],
      [503, 'There are no metrics: this process has no workers, and none of its own.\n'],
    );
    const registry = smallRegistry();
    registry.getSingleMetric('a_total').collect = () => Promise.reject(new Error('db down'));
    AggregatorRegistry.setRegistries([registry]);
    assert.strictEqual((await scrape(aggregator, { onError })).status, 500);
    await assert.rejects(aggregator.clusterMetrics(), new Error('db down'));
  });

  it('a Registry in which no metric is registered answers with status 503', async () => {
    const registry = new Registry();
    const failures = [];
    const { status, text } = await scrape(registry, { onError: ({ message }) => failures.push(message) });
    const reason = 'There are no metrics: none is registered in this Registry.';
    assert.deepStrictEqual([status, text], [503, `${reason}\n`]);
    assert.deepStrictEqual(failures, [reason]);
    // A metric without series is no failure.
    new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [registry] });
    assert.strictEqual((await scrape(registry)).status, 200);
  });

  it('an AggregatorRegistry of a single process answers with status 503 after it was closed', async () => {
    const closed = new AggregatorRegistry();
    await closed.close();
    await aggregator.close();
    const { status, text } = await scrape(closed, { onError() {} });
    assert.deepStrictEqual([status, text], [503, 'The AggregatorRegistry was closed.\n']);
  });
});

test('metricsBytes() is the page of metrics() as UTF-8, also compressed', async () => {
  const { gunzipSync } = require('node:zlib');
  for (const contentType of [TEXT, OPENMETRICS]) {
    const registry = smallRegistry(contentType);
    new Gauge({ name: 'g', help: 'ünï ☃', registers: [registry] });
    const text = await registry.metrics();
    assert.strictEqual((await registry.metricsBytes()).toString(), text);
    assert.strictEqual(gunzipSync(await registry.metricsBytes({ gzip: true })).toString(), text);
    registry.getMetricsAsString = async ({ name }) => name;
    assert.strictEqual((await registry.metricsBytes()).toString(), await registry.metrics());
    assert.strictEqual(gunzipSync(await registry.metricsBytes({ gzip: true }))[0], 'a'.charCodeAt());
  }
});
