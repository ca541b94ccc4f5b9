'use strict';

// What a receiver gets, what it may answer, and what becomes of the pushes then.

const assert = require('node:assert');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { Counter, Gauge, Histogram, Registry, RemoteWrite, Summary } = require('../..');
const { samples } = require('../../lib/testing/testing');
const { viewOf } = require('../../lib/registry/metric-view');
const { Program } = require('../fixtures/program');
const { FakeReceiver, accept, answerForever } = require('./fixtures/receiver');

const labels = { instance: 'box-1', job: 'batch' };

describe('RemoteWrite', () => {
  /** @type {Registry} */
  let registry;
  /** @type {{stop(): Promise<void>}[]} */
  let running;

  beforeEach(() => {
    registry = new Registry();
    running = [];
  });

  afterEach(() => Promise.all(running.map(each => each.stop())));

  async function receiver(answer) {
    const started = await FakeReceiver.start(answer);
    running.push(started);
    return started;
  }

  function remoteWrite(to, options) {
    return new RemoteWrite(to.url ?? to, { labels, ...options }, registry);
  }

  function gauge(name, value) {
    const metric = new Gauge({ name, help: 'h', registers: [registry] });
    metric.set(value);
    return metric;
  }

  /** The value of the only series of a name. */
  function valueOf(to, name) {
    const found = to.seriesOf(name);
    assert.strictEqual(found.length, 1, name);
    return found[0].value;
  }

  const resultsOf = (to, name) => to.results(name, labels);

  const isStale = ({ value }) => value === 'stale';

  /** Registers a custom metric object. */
  function own(name, values, more) {
    registry.registerMetric({ name, get: () => ({ name, help: 'h', type: 'gauge', values, ...more }) });
  }

  /** A registry with every kind of metric and awkward labels. */
  function fill(register) {
    const registers = [register];
    const labelNames = ['path', 'Method', 'b'];
    const counter = new Counter({
      name: 'requests_total',
      help: 'Lines\nand "quotes" \\',
      labelNames,
      registers,
    });
    counter.inc({ path: 'a"b\\c\nd', Method: 'GET' }, 2);
    counter.inc({ path: '{x="1",y="2"}', b: 'ü😀' }, 0.1);
    counter.inc({ Method: '=', path: ',' }, 1e300);
    const values = new Gauge({ name: 'values', help: 'h', labelNames: ['of'], registers });
    for (const value of [0, -1.5, NaN, Infinity, -Infinity, 5e-324]) values.set({ of: String(value) }, value);
    const histogram = new Histogram({
      name: 'sizes',
      help: 'h',
      labelNames,
      buckets: [0.1, 1, 1e6],
      registers,
    });
    for (const value of [0.05, 0.5, 7, 1e7]) histogram.observe({ path: '/' }, value);
    const summary = new Summary({
      name: 'times',
      help: 'h',
      labelNames,
      percentiles: [0.5, 0.99],
      registers,
    });
    for (const value of [1, 2, 3]) summary.observe({ path: '/' }, value);
    register.registerMetric({
      name: 'own',
      get: () => ({
        name: 'own',
        help: 'h',
        type: 'gauge',
        values: [{ value: '7', labels: { z: 1, a: null } }],
      }),
    });
    register.setDefaultLabels({ zone: 'west', le: 'none' });
  }

  for (const protocol of ['1.0', '2.0']) {
    for (const contentType of [Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE]) {
      it(`version ${protocol} sends the samples of the page, ${contentType.split(';')[0]}`, async () => {
        registry = new Registry(contentType);
        fill(registry);
        const to = await receiver();
        const result = await remoteWrite(to, { protocol }).push();
        const received = [...to.series.values()].filter(
          ({ labels: pairs }) => !new Map(pairs).get('__name__').startsWith('prom_client_'),
        );
        const page = await samples(registry);
        const expected = page.map(({ name, labels: own, value }) => [
          JSON.stringify(Object.entries({ ...labels, ...own, __name__: name }).sort()),
          value,
        ]);
        const actual = received.map(series => [JSON.stringify([...series.labels].sort()), series.value]);
        assert.deepStrictEqual(new Map(actual), new Map(expected));
        assert.strictEqual(to.requests[0].series.length, result.samples);
        assert.deepStrictEqual({ ...result, samples: 0 }, { protocol, samples: 0, dropped: 0 });
        for (const { labels: pairs, timestamp } of received) {
          const names = pairs.map(([name]) => name);
          assert.deepStrictEqual(names, [...names].sort());
          assert.ok(Math.abs(Date.now() - timestamp) < 60_000);
        }
      });
    }

    it(`version ${protocol} sends types, help texts and exemplars`, async () => {
      registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
      const registers = [registry];
      const counter = new Counter({ name: 'requests_total', help: 'h1', enableExemplars: true, registers });
      counter.inc({ value: 2, exemplarLabels: { trace: 'ü' } });
      new Summary({ name: 'times', help: 'h2', registers }).observe(1);
      const to = await receiver();
      await remoteWrite(to, { protocol }).push();
      const series = [...to.series.values()];
      const typeOf = name => series.find(each => new Map(each.labels).get('__name__') === name);
      const { type, help, exemplar } = typeOf('requests_total');
      assert.deepStrictEqual({ type, help }, { type: 'counter', help: 'h1' });
      assert.deepStrictEqual(exemplar.labels, [['trace', 'ü']]);
      assert.strictEqual(exemplar.value, 2);
      assert.ok(Math.abs(Date.now() - exemplar.timestamp) < 60_000);
      assert.deepStrictEqual([typeOf('times_sum').type, typeOf('times_sum').help], ['summary', 'h2']);
    });
  }

  /** A native histogram, and what it has recorded. */
  function nativeHistogram(name, config) {
    const metric = new Histogram({
      ...{ name, help: 'h', labelNames: ['a'], registers: [registry], buckets: [] },
      ...{ nativeHistogramBucketFactor: 1.1, ...config },
    });
    for (const value of [0, 1e-200, 0.5, 0.5, 7, -3, 1e300, 9]) metric.observe({ a: 'x' }, value);
    const { table, buckets } = viewOf(metric);
    const bucketsOf = labelSet => {
      const { maxBuckets, ...read } = buckets.read(table.find(labelSet));
      assert.strictEqual(maxBuckets, 160);
      return { count: 8, ...read };
    };
    return { metric, bucketsOf };
  }

  for (const protocol of ['1.0', '2.0']) {
    it(`version ${protocol} sends native histograms if it is told to, and those with bounds also as classic ones`, async () => {
      const { metric, bucketsOf } = nativeHistogram('native');
      nativeHistogram('both', { buckets: [1] });
      metric.observe({ a: 'y' }, -1);
      const to = await receiver();
      const push = remoteWrite(to, { protocol, nativeHistograms: true });
      const { dropped } = await push.push();
      assert.strictEqual(dropped, 0);
      const [series, other] = to.seriesOf('native');
      assert.deepStrictEqual(series.histogram, bucketsOf({ a: 'x' }));
      const expected = [0, 1e-200, 0.5, 0.5, 7, -3, 1e300, 9].reduce((a, b) => a + b);
      assert.strictEqual(series.value, expected);
      assert.deepStrictEqual([series.type, series.help], ['histogram', 'h']);
      assert.deepStrictEqual([other.histogram.count, other.value], [1, -1]);
      assert.deepStrictEqual(Object.fromEntries(series.labels), { ...labels, a: 'x', __name__: 'native' });
      assert.ok(Math.abs(Date.now() - series.timestamp) < 60_000);
      const names = [...to.series.values()].map(each => Object.fromEntries(each.labels).__name__);
      const own = names.filter(name => /^(native|both)/.test(name)).sort();
      assert.deepStrictEqual(own, [
        ...['both', 'both_bucket', 'both_bucket', 'both_count', 'both_sum'],
        ...['native', 'native'],
      ]);
      metric.remove('y');
      await push.push();
      assert.deepStrictEqual(
        to.seriesOf('native').map(({ value, histogram }) => [isStale({ value }), histogram.count]),
        [
          [false, 8],
          [true, undefined],
        ],
      );
      await push.stop();
      assert.ok(to.seriesOf('native').every(isStale));
    });

    it(`version ${protocol} sends only the text page's samples of native histograms unless it is told otherwise`, async () => {
      nativeHistogram('native');
      const to = await receiver();
      await remoteWrite(to, { protocol }).push();
      const found = [...to.series.keys()].filter(key => key.startsWith('native'));
      const shown = found.map(key => key.slice(0, key.indexOf('{')));
      assert.deepStrictEqual(shown, ['native_bucket', 'native_sum', 'native_count']);
      assert.ok([...to.series.values()].every(({ histogram }) => histogram === undefined));
    });

    it(`version ${protocol} sends the exemplars of a native series in the order of their time, and each once`, async t => {
      t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 });
      registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
      const { metric } = nativeHistogram('native', { enableExemplars: true });
      const observe = (value, trace) => {
        t.mock.timers.tick(1000);
        metric.observe({ labels: { a: 'x' }, value, exemplarLabels: { trace } });
      };
      observe(5, 'b');
      observe(0.1, 'a');
      const to = await receiver();
      const push = remoteWrite(to, { protocol, nativeHistograms: true });
      await push.push();
      const { exemplars } = to.seriesOf('native')[0];
      const texts = exemplars.map(each => [each.labels, each.value, each.timestamp]);
      assert.deepStrictEqual(texts, [
        [[['trace', 'b']], 5, 1_700_000_001_000],
        [[['trace', 'a']], 0.1, 1_700_000_002_000],
      ]);
      observe(70, 'c');
      await push.push();
      assert.deepStrictEqual(to.seriesOf('native')[0].exemplar.labels, [['trace', 'c']]);
      await push.push();
      assert.strictEqual(to.seriesOf('native')[0].exemplar, undefined);
      // The clock is set back.
      t.mock.timers.setTime(1_600_000_000_000);
      await push.push();
      observe(700, 'd');
      await push.push();
      assert.strictEqual(to.seriesOf('native')[0].exemplars[0].labels[0][1], 'd');
    });
  }

  it('version 2.0 sends when a series began to count, unless it does not count; version 1.0 does not', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 });
    const options = { help: 'h', labelNames: ['a'], registers: [registry] };
    const counter = new Counter({ name: 'counter', ...options });
    counter.inc({ a: 'first' });
    await remoteWrite(await receiver(), {}).push();
    t.mock.timers.tick(2500);
    counter.inc({ a: 'second' });
    new Summary({ name: 'summary', percentiles: [0.5], ...options }).observe({ a: 'x' }, 1);
    new Histogram({ name: 'classic', buckets: [1], ...options }).observe({ a: 'x' }, 1);
    nativeHistogram('native');
    gauge('gauge', 1);
    own('own', [{ value: 1 }]);
    for (const protocol of ['2.0', '1.0']) {
      const to = await receiver();
      await remoteWrite(to, { protocol, nativeHistograms: true }).push();
      const starts = [...to.series.values()].map(({ labels: pairs, start }) => {
        const { __name__: name, a = '', quantile, le } = Object.fromEntries(pairs);
        return [`${name} ${le ?? quantile ?? a}`, start];
      });
      const [early, late] = protocol === '2.0' ? [1_700_000_000_000, 1_700_000_002_000] : [];
      const shown = starts.filter(([name]) => !name.startsWith('prom_client'));
      assert.deepStrictEqual(shown, [
        ...[
          ['counter first', early],
          ['counter second', late],
        ],
        ...[
          ['summary 0.5', undefined],
          ['summary_sum x', late],
          ['summary_count x', late],
        ],
        ...['classic_bucket 1', 'classic_bucket +Inf', 'classic_sum x', 'classic_count x'].map(name => [
          name,
          late,
        ]),
        ...[
          ['native x', late],
          ['gauge ', undefined],
          ['own ', undefined],
        ],
      ]);
    }
  });

  it('the headers are those of the specifications', async () => {
    gauge('value', 1);
    const to = await receiver();
    for (const protocol of ['1.0', '2.0']) await remoteWrite(to, { protocol }).push();
    const sent = to.requests.map(({ headers }) => [
      ...[headers['content-type'], headers['content-encoding'], headers['x-prometheus-remote-write-version']],
    ]);
    assert.deepStrictEqual(sent, [
      ['application/x-protobuf', 'snappy', '0.1.0'],
      ['application/x-protobuf;proto=io.prometheus.write.v2.Request', 'snappy', '2.0.0'],
    ]);
    assert.match(to.requests[0].headers['user-agent'], /^prom-client-cluster\/\d/);
  });

  it('a user in the URL and an Authorization header are sent', async () => {
    gauge('value', 1);
    const to = await receiver();
    await remoteWrite(to.url.replace('//', '//user:p%40ss@')).push();
    await remoteWrite(to, { headers: { Authorization: 'Bearer token' } }).push();
    const sent = to.requests.map(({ headers }) => headers.authorization);
    assert.deepStrictEqual(sent, [`Basic ${btoa('user:p@ss')}`, 'Bearer token']);
  });

  it('a receiver without version 2.0 gets 1.0, and stays with it', async () => {
    gauge('value', 1);
    const silent = response => response.writeHead(204).end();
    const refusing = (response, request) =>
      request.protocol === '2.0' ? response.writeHead(415).end() : accept(response, request);
    for (const answer of [silent, refusing]) {
      const to = await receiver(answer);
      const push = remoteWrite(to);
      for (let i = 0; i < 2; i++) assert.strictEqual((await push.push()).protocol, '1.0');
      const protocols = to.requests.map(({ protocol }) => protocol);
      assert.deepStrictEqual(protocols, ['2.0', '1.0', '1.0']);
      assert.strictEqual(valueOf(to, 'value'), 1);
    }
  });

  it('a receiver that is replaced by one of version 1.0 is asked again', async () => {
    let hasVersion2 = true;
    const to = await receiver((response, request) => {
      if (request.protocol === '2.0' && !hasVersion2) response.writeHead(415).end();
      else accept(response, request);
    });
    gauge('value', 1);
    const push = remoteWrite(to);
    assert.strictEqual((await push.push()).protocol, '2.0');
    hasVersion2 = false;
    await assert.rejects(push.push(), /status 415/);
    assert.strictEqual((await push.push()).protocol, '1.0');
  });

  it('samples that a receiver of version 2.0 has not written count as failed', async () => {
    gauge('value', 1);
    let written = '1';
    const to = await receiver(response =>
      response.writeHead(200, { 'X-Prometheus-Remote-Write-Samples-Written': written }).end(),
    );
    const push = remoteWrite(to, { protocol: '2.0' });
    await assert.rejects(push.push(), /has written 1 of 9 samples/);
    written = '9';
    await push.push();
    assert.deepStrictEqual(resultsOf(to, 'samples'), { pushed: 1, failed: 8, dropped: 0 });
    assert.deepStrictEqual(resultsOf(to, 'pushes'), { pushed: 0, failed: 1, dropped: 0 });
  });

  it('a request is sent again on 500, on 429 and if the connection closes', async () => {
    gauge('value', 1);
    const to = await receiver((response, request, count) => {
      if (count === 1) response.writeHead(500).end();
      else if (count === 2) response.writeHead(429, { 'Retry-After': '0' }).end();
      else if (count === 3) response.destroy();
      else accept(response, request);
    });
    await remoteWrite(to).push();
    assert.strictEqual(to.requests.length, 4);
    assert.strictEqual(valueOf(to, 'value'), 1);
  });

  it('pauses double, or are as long as the receiver asks for; the last answer is reported', async () => {
    gauge('value', 1);
    for (const [headers, retries, milliseconds] of [
      [{}, 3, 100 + 200 + 400],
      [{ 'Retry-After': '1' }, 1, 1000],
    ]) {
      const to = await receiver(response => response.writeHead(503, headers).end());
      const began = performance.now();
      await assert.rejects(remoteWrite(to, { retries }).push(), /status 503/);
      // A timer may fire a millisecond early.
      const took = performance.now() - began;
      assert.ok(took >= milliseconds - retries, `${took} ms`);
      assert.strictEqual(to.requests.length, retries + 1);
    }
  });

  it('a request is not sent again on 400, or if the receiver asks for a long pause', async () => {
    gauge('value', 1);
    for (const [status, headers] of [
      [400, {}],
      [302, { Location: '/' }],
      [503, { 'Retry-After': '3600' }],
      [429, { 'Retry-After': new Date(Date.now() + 3_600_000).toUTCString() }],
    ]) {
      const to = await receiver(response => response.writeHead(status, headers).end('no\nsuch\ttenant'));
      await assert.rejects(remoteWrite(to).push(), {
        message: `the receiver has answered with status ${status}: no such tenant`,
      });
      assert.strictEqual(to.requests.length, 1);
    }
  });

  it('a receiver that hangs fails after the timeout and the retries', async () => {
    gauge('value', 1);
    const to = await receiver(() => {});
    const push = remoteWrite(to, { timeout: 300, retries: 1 });
    await assert.rejects(push.push(), /not answered within 300 ms/);
    // On a busy machine, requests may be given up before they have arrived.
    assert.ok(to.requests.length <= 2);
  });

  it('an endless answer is not read', async () => {
    gauge('value', 1);
    const counted = { written: 0 };
    const to = await receiver(response => answerForever(response, counted));
    await assert.rejects(remoteWrite(to).push(), /status 400: x{100}/);
    assert.ok(counted.written < 2 ** 28, `${counted.written} bytes`);
  });

  it('the status counts if the rest of an answer does not come, whether the connection closes or not', async () => {
    gauge('value', 1);
    for (const closes of [false, true]) {
      let status = 200;
      const to = await receiver(response => {
        const headers = { 'X-Prometheus-Remote-Write-Samples-Written': '9', 'Content-Length': '100' };
        response.writeHead(status, headers);
        response.write('begin');
        if (closes) response.socket.end();
      });
      // On a busy machine, the beginning of an answer may take as long.
      const push = remoteWrite(to, { timeout: 400, retries: 20 });
      assert.strictEqual((await push.push()).samples, 9);
      status = 400;
      await assert.rejects(push.push(), /status 400: begin$/);
      if (closes) assert.strictEqual(to.requests.length, 2);
    }
  });

  it('a series that ends gets one stale marker', async () => {
    const to = await receiver();
    const metric = new Gauge({ name: 'value', help: 'h', labelNames: ['of'], registers: [registry] });
    const push = remoteWrite(to);
    metric.set({ of: 'a"' }, 1);
    metric.set({ of: 'b' }, 2);
    await push.push();
    metric.remove({ of: 'a"' });
    await push.push();
    await push.push();
    const stale = to.requests.map(({ series }) => series.filter(isStale));
    const lengths = stale.map(({ length }) => length);
    assert.deepStrictEqual(lengths, [0, 1, 0]);
    assert.strictEqual(new Map(stale[1][0].labels).get('of'), 'a"');
    metric.set({ of: 'a"' }, 3);
    await push.push();
    assert.strictEqual(to.series.get(`value${JSON.stringify({ ...labels, of: 'a"' })}`).value, 3);
  });

  it('a stale marker that is refused again and again is given up after twenty pushes', async () => {
    const to = await receiver((response, request, count) =>
      count > 1 ? response.writeHead(400).end() : accept(response, request),
    );
    gauge('value', 1);
    const push = remoteWrite(to, { protocol: '1.0' });
    await push.push();
    registry.clear();
    for (let i = 0; i < 22; i++) await assert.rejects(push.push());
    const sent = to.requests.map(({ series }) => series.filter(isStale).length);
    assert.deepStrictEqual(sent, [0, ...Array(20).fill(1), 0, 0]);
  });

  it('timestamps rise while the clock is set back by no more than an interval; after a longer step they are those of the clock', async t => {
    const to = await receiver();
    gauge('value', 1);
    const push = remoteWrite(to, { interval: 1000 });
    const start = Date.UTC(2026, 0, 1);
    const DAY = 86_400_000;
    let now;
    t.mock.method(Date, 'now', () => now);
    const times = [];
    // The last one is that of the stale markers.
    for (const step of [0, 0, -998, 5, DAY, 10, 11, -990, 20, DAY, DAY - 1, 30]) {
      now = start + step;
      await push.push();
      times.push(to.requests.at(-1).series[0].timestamp - start);
    }
    now = start + 30;
    await push.stop();
    times.push(...to.requests.slice(-2).map(({ series }) => series[0].timestamp - start));
    assert.deepStrictEqual(times, [0, 1, 2, 5, DAY, 10, 11, -990, 20, DAY, DAY + 1, 30, 31, 32]);
  });

  it('the numbers are those of the call', async () => {
    const to = await receiver();
    const metric = gauge('value', 1);
    const pushed = remoteWrite(to).push();
    metric.set(2);
    await pushed;
    assert.strictEqual(valueOf(to, 'value'), 1);
  });

  it('of several pushes that wait, only the newest is sent', async () => {
    let answerFirst;
    const to = await receiver((response, request, count) => {
      if (count > 1) accept(response, request);
      else answerFirst = () => accept(response, request);
      arrived();
    });
    let arrived;
    const first = new Promise(resolve => (arrived = resolve));
    const metric = gauge('value', 1);
    const push = remoteWrite(to);
    const pushes = [push.push()];
    await first;
    for (const value of [2, 3, 4]) {
      metric.set(value);
      pushes.push(push.push());
    }
    answerFirst();
    const results = await Promise.allSettled(pushes);
    const shown = results.map(({ status }) => status);
    assert.deepStrictEqual(shown, ['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    assert.strictEqual(results[1].reason.message, 'The push was replaced by a newer one.');
    assert.strictEqual(to.requests.length, 2);
    assert.strictEqual(valueOf(to, 'value'), 4);
    assert.deepStrictEqual(resultsOf(to, 'pushes'), { pushed: 1, failed: 0, dropped: 2 });
  });

  it('a push that fails is not tried again once a newer one waits', async () => {
    const to = await receiver((response, request, count) => {
      if (count > 1) return void accept(response, request);
      // A minute's pause: the test ends earlier only if the second push cuts it short.
      response.writeHead(503, { 'Retry-After': '60' }).end();
      response.on('close', arrived);
    });
    let arrived;
    const answered = new Promise(resolve => (arrived = resolve));
    const metric = gauge('value', 1);
    const push = remoteWrite(to);
    const first = push.push();
    await answered;
    metric.set(2);
    await Promise.all([assert.rejects(first, /status 503/), push.push()]);
    assert.strictEqual(to.requests.length, 2);
    assert.strictEqual(valueOf(to, 'value'), 2);
  });

  it('series that Prometheus would refuse are left out and counted', async () => {
    const values = [
      { value: 1, labels: { a: '1', b: '2' } },
      { value: 2, labels: { b: '2', a: '1' } },
      { value: 3, labels: { a: '1', b: '2', c: '' } },
      { value: 4, labels: { 'not-valid': '1' } },
      { value: 5, labels: {}, metricName: 'not valid' },
      { value: 6, labels: { __name__: 'other' } },
    ];
    own('own', values);
    const to = await receiver();
    const push = remoteWrite(to);
    assert.strictEqual((await push.push()).dropped, 5);
    await push.push();
    assert.strictEqual(valueOf(to, 'own'), 1);
    assert.deepStrictEqual(resultsOf(to, 'samples'), { pushed: 9, failed: 0, dropped: 5 });
  });

  it('a large registry is sent in several requests', async () => {
    const count = 6000;
    const metric = new Counter({ name: 'many_total', help: 'h', labelNames: ['a'], registers: [registry] });
    const text = 'x'.repeat(200);
    for (let i = 0; i < count; i++) metric.inc({ a: `${text}${i}` }, i);
    for (const protocol of ['1.0', '2.0']) {
      const to = await receiver();
      const { samples: sent } = await remoteWrite(to, { protocol }).push();
      assert.strictEqual(to.requests.length, 2);
      assert.strictEqual(sent, count + 8);
      assert.strictEqual(to.series.size, count + 8);
      const values = [...to.series.values()].slice(0, count);
      assert.ok(values.every(({ labels: [, [, own]], value }) => own === `${text}${value}`));
    }
  });

  it('requests stay small however many buckets native histograms have', async () => {
    const config = { nativeHistogramBucketFactor: 1.002, nativeHistogramMaxBucketNumber: 1e6 };
    const { metric } = nativeHistogram('native', config);
    const values = Array.from({ length: 20_000 }, (_, i) => 1.0028 ** i);
    for (let a = 0; a < 40; a++) values.forEach(metric.labels({ a }).observe);
    const to = await receiver();
    await remoteWrite(to, { nativeHistograms: true }).push();
    assert.strictEqual(to.seriesOf('native').length, 41);
    for (const { bytes } of to.requests) assert.ok(bytes < 2 ** 20 + 50_000, `${bytes} bytes`);
  });

  it('a request whose content is refused does not hold up the others of its push', async () => {
    const metric = new Counter({ name: 'many_total', help: 'h', labelNames: ['a'], registers: [registry] });
    const text = 'x'.repeat(1000);
    for (let i = 0; i < 1500; i++) metric.inc({ a: `${text}${i}` });
    for (const [status, sent] of [
      [400, 2],
      [401, 1],
    ]) {
      const to = await receiver((response, request, count) =>
        count === 1 ? response.writeHead(status).end() : accept(response, request),
      );
      const push = remoteWrite(to, { protocol: '1.0' });
      await assert.rejects(push.push(), { message: new RegExp(`status ${status}`) });
      assert.strictEqual(to.requests.length, sent);
      const arrived = to.requests.slice(1).reduce((sum, { series }) => sum + series.length, 0);
      await push.push();
      const { pushed, failed } = resultsOf(to, 'samples');
      assert.deepStrictEqual([pushed, pushed + failed], [arrived, 1508]);
    }
  });

  it('a metric that cannot be read costs the push that metric, which is counted, with one warning', async t => {
    const warn = t.mock.method(process, 'emitWarning', () => {});
    const to = await receiver();
    gauge('other', 1);
    let collect = () => {};
    new Gauge({ name: 'value', help: 'h', registers: [registry], collect: () => collect() }).set(2);
    const push = remoteWrite(to, { timeout: 1000, retries: 20 });
    assert.strictEqual((await push.push()).dropped, 0);
    const endings = [() => Promise.reject(new Error('no connection')), () => new Promise(() => {})];
    for (const [i, ending] of endings.entries()) {
      collect = ending;
      assert.strictEqual((await push.push()).dropped, 1);
      // With its stale marker.
      assert.strictEqual(valueOf(to, 'value'), 'stale');
      assert.strictEqual(valueOf(to, 'other'), 1);
      collect = () => {};
      await push.push();
      assert.strictEqual(valueOf(to, 'value'), 2);
      assert.strictEqual(resultsOf(to, 'samples').dropped, i + 1);
    }
    assert.strictEqual(resultsOf(to, 'pushes').failed, 0);
    const texts = warn.mock.calls.map(call => call.arguments[0]);
    assert.deepStrictEqual(texts, ['Remote write leaves out value, which cannot be read: no connection']);
  });

  it('odd values of a custom metric object cost the push those samples, which are counted', async () => {
    const to = await receiver();
    gauge('other', 1);
    const textless = { toString: null };
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const [i, odd] of [
      { values: [{ value: textless, labels: {} }] },
      { values: [{ value: 1, labels: { a: textless } }] },
      { values: [null] },
      { values: [proxy] },
      { values: [{ value: 1, labels: {}, metricName: textless }] },
      { values: [], help: textless },
      { values: [], type: textless },
      { values: [], name: textless },
    ].entries()) {
      const values = [{ value: 1, labels: { b: '1' } }, ...odd.values];
      own(`own${i}`, values, { ...odd, values });
      const { dropped } = await remoteWrite(to).push();
      assert.strictEqual(dropped, i + 1, `${i}`);
      assert.strictEqual(valueOf(to, 'other'), 1);
    }
  });

  it('a default label that has no text or no valid name is left out, with one warning each', async t => {
    const warn = t.mock.method(process, 'emitWarning', () => {});
    const to = await receiver();
    gauge('value', 1);
    own('own', [{ value: 2, labels: {} }]);
    const labels = { zone: 'a', odd: { toString: null } };
    registry.setDefaultLabels(labels);
    labels['not valid'] = 'b';
    for (let i = 0; i < 2; i++) assert.strictEqual((await remoteWrite(to).push()).dropped, 0);
    for (const name of ['value', 'own']) {
      const found = to.requests.at(-1).series.map(({ labels: pairs }) => Object.fromEntries(pairs));
      const { zone, odd } = found.find(({ __name__ }) => __name__ === name);
      assert.deepStrictEqual([zone, odd], ['a', undefined]);
    }
    const shown = warn.mock.calls.map(call => call.arguments[0]);
    assert.deepStrictEqual(shown, [
      'Remote write leaves out the default label odd, which cannot be read: Cannot convert object to primitive value',
      'Remote write leaves out the default label not valid, which cannot be read: Invalid label name',
    ]);
  });

  it('stop() while stop() runs is no failure', async () => {
    const to = await receiver();
    gauge('value', 1);
    const push = remoteWrite(to);
    const warnings = [];
    const onWarning = ({ message }) => warnings.push(message);
    process.on('warning', onWarning);
    push.start({ interval: 10_000 });
    await Promise.all([push.stop(), push.stop(), push.stop()]);
    await new Promise(resolve => setImmediate(resolve));
    process.removeListener('warning', onWarning);
    assert.deepStrictEqual(warnings, []);
    const stale = to.requests.at(-1).series.filter(isStale);
    assert.strictEqual(stale.length, 9);
  });

  for (const protocol of ['1.0', '2.0']) {
    it(`stop() marks all series although its last push of ${protocol} is refused`, async t => {
      t.mock.method(process, 'emitWarning', () => {});
      for (const status of [400, 422, 429, 500]) {
        const to = await receiver((response, request) => {
          if (request.series.every(isStale)) return accept(response, request);
          // One series is too many for a limit of the tenant, or the receiver is restarting.
          response.writeHead(to.requests.length === 1 ? 200 : status, {
            'X-Prometheus-Remote-Write-Samples-Written': String(request.series.length),
          });
          return response.end();
        });
        gauge(`value_${status}`, 1);
        const push = remoteWrite(to, { protocol, retries: 0 });
        await push.push();
        await push.stop();
        assert.ok(to.requests.at(-1).series.every(isStale), `status ${status}`);
        assert.strictEqual(to.requests.length, 3);
      }
    });
  }

  it('stop() asks a receiver that has failed once more, and no more often', async t => {
    t.mock.method(process, 'emitWarning', () => {});
    const to = await receiver(response => response.writeHead(503).end());
    gauge('value', 1);
    await remoteWrite(to, { protocol: '1.0', retries: 1 }).stop();
    const isEnd = ({ series }) => series.every(isStale);
    assert.deepStrictEqual(to.requests.map(isEnd), [false, false, true]);
  });

  for (const [what, answer] of [
    ['hangs', () => {}],
    ['asks for a long pause', response => response.writeHead(503, { 'Retry-After': '60' }).end()],
  ]) {
    it(`stop() ends after 5 seconds if the receiver ${what}; nothing is sent then, and what is lost is counted`, async t => {
      t.mock.method(process, 'emitWarning', () => {});
      let arrived;
      const first = new Promise(resolve => (arrived = resolve));
      let isOver = false;
      const to = await receiver((response, request) => {
        if (isOver) accept(response, request);
        else answer(response);
        if (answer.length === 0) arrived();
        else response.on('close', arrived);
      });
      gauge('value', 1);
      const push = remoteWrite(to, { protocol: '1.0' });
      t.mock.timers.enable({ apis: ['setTimeout'] });
      let isStopped = false;
      const stopped = push.stop().then(() => (isStopped = true));
      await first;
      t.mock.timers.tick(4999);
      await new Promise(resolve => setImmediate(resolve));
      assert.strictEqual(isStopped, false);
      t.mock.timers.tick(1);
      await stopped;
      t.mock.timers.tick(600_000);
      isOver = true;
      assert.strictEqual(to.requests.length, 1);
      await push.push();
      await push.push();
      assert.strictEqual(to.requests.length, 3);
      assert.deepStrictEqual(resultsOf(to, 'pushes'), { pushed: 1, failed: 1, dropped: 0 });
      assert.deepStrictEqual(resultsOf(to, 'samples'), { pushed: 9, failed: 9, dropped: 0 });
      t.mock.timers.reset();
      await push.stop();
    });
  }

  it('stop() ends after its timeout although a push is under way that waits for a hook: neither is sent', async t => {
    t.mock.method(process, 'emitWarning', () => {});
    const to = await receiver();
    let release;
    const held = new Promise(resolve => (release = resolve));
    gauge('value', 1).collect = () => held;
    const push = remoteWrite(to, { protocol: '1.0' });
    const under = assert.rejects(push.push(), /stop\(\) has ended before the push was sent/);
    await push.stop({ timeout: 1 });
    release();
    await under;
    assert.strictEqual(to.requests.length, 0);
    await push.push();
    assert.deepStrictEqual(resultsOf(to, 'pushes'), { pushed: 0, failed: 1, dropped: 1 });
    await push.stop();
  });

  it('stop() rejects if its timeout is not a number of milliseconds, and may be a listener of a signal', async () => {
    const to = await receiver();
    gauge('value', 1);
    const push = remoteWrite(to);
    await assert.rejects(push.stop({ timeout: '5s' }), /timeout must be a number of milliseconds: '5s'/);
    await push.push();
    await push.stop('SIGTERM', 15);
    assert.ok(to.requests.at(-1).series.every(isStale));
  });

  it('start() while stop() runs goes on: no series ends', async () => {
    const to = await receiver();
    gauge('value', 1);
    const push = remoteWrite(to);
    await push.push();
    const stopped = push.stop();
    push.start({ interval: 10_000 });
    await stopped;
    await push.push();
    const values = to.requests.flatMap(({ series }) => series.map(({ value }) => value));
    assert.ok(!values.includes('stale'));
    await push.stop();
  });

  it('start() pushes at an interval; stop() pushes once more and ends all series', async () => {
    let arrived;
    const third = new Promise(resolve => (arrived = resolve));
    const to = await receiver((response, request, count) => {
      accept(response, request);
      if (count === 3) arrived();
    });
    const metric = gauge('value', 1);
    const push = remoteWrite(to, { interval: 20 });
    push.start();
    await third;
    metric.set(7);
    await push.stop();
    const values = to.requests.map(
      ({ series }) => series.find(({ labels: pairs }) => new Map(pairs).get('__name__') === 'value').value,
    );
    assert.deepStrictEqual(values.slice(-2), [7, 'stale']);
    assert.ok(to.requests.at(-1).series.every(isStale));
    assert.strictEqual(to.requests.at(-1).series.length, 9);
    const { length } = to.requests;
    await push.stop();
    // The series of the last push and no timer's.
    assert.strictEqual(to.requests.length, length + 2);
  });

  it('pushes in the background do not keep the process alive, nor end it', async () => {
    const to = await receiver(() => {});
    const code = `
      const { Gauge, RemoteWrite, register } = require(${JSON.stringify(require.resolve('../..'))});
      new Gauge({ name: 'value', help: 'h' }).set(1);
      const options = { labels: { instance: 'i' }, retries: 0 };
      const hanging = new RemoteWrite(${JSON.stringify(to.url)}, options);
      hanging.start();
      const closed = new RemoteWrite('http://127.0.0.1:1/', options);
      closed.start({ interval: 10 });
      process.on('warning', ({ message }) => console.log(message));
      closed.stop().then(() => console.log('stopped'));`;
    const program = new Program(['-e', code]);
    await program.line(/^Remote write has failed: .*ECONNREFUSED/);
    await program.line(/^stopped$/);
    assert.ok(Number.isInteger(await program.ended()), program.errors);
    assert.strictEqual(await program.ended(), 0, program.errors);
    assert.doesNotMatch(program.errors, /Unhandled/);
  });

  it('an explicit push keeps the process alive', async () => {
    const to = await receiver((response, request) => setImmediate(() => accept(response, request)));
    const code = `
      const { Gauge, RemoteWrite } = require(${JSON.stringify(require.resolve('../..'))});
      new Gauge({ name: 'value', help: 'h' }).set(1);
      const push = new RemoteWrite(${JSON.stringify(to.url)}, { labels: { instance: 'i' } });
      push.push().then(() => console.log('pushed'));`;
    const program = new Program(['-e', code]);
    await program.line(/^pushed$/);
    assert.strictEqual(await program.ended(), 0, program.errors);
  });

  it('arguments that are not valid throw', () => {
    const url = 'http://localhost/';
    const invalid = [
      [[undefined, { labels }], /URL of a receiver/],
      [['ftp://localhost/', { labels }], /URL of a receiver/],
      [[url], /labels\.instance/],
      [[url, { labels: { job: 'j' } }], /labels\.instance/],
      [[url, { labels: { instance: 'i', 'not-valid': 'x' } }], /Invalid label name/],
      [[url, { labels: { instance: 'i', __name__: 'x' } }], /__name__/],
      [[url, { labels: { instance: 'i', le: 'x' } }], /labels must not have a le/],
      [[url, { labels, interval: '15s' }], /interval must be a number of milliseconds: '15s'/],
      [[url, { labels, timeout: 0 }], /timeout must be a number of milliseconds: 0/],
      [[url, { labels, retries: -1 }], /retries must be a whole number: -1/],
      [[url, { labels, protocol: 2 }], /protocol must be '1.0' or '2.0': 2/],
      [[url, { labels: { instance: 'i', job: undefined } }], /labels\.job must be a text: undefined/],
      [[url, { labels, headers: { Authorization: undefined } }], /headers\.Authorization must be a text/],
      [[url, { labels, headers: new Headers({ Authorization: 'x' }) }], /headers must be an object/],
      [[url, { labels, headers: [['Authorization', 'x']] }], /headers must be an object/],
      [[url, { labels, headers: null }], /headers must be an object/],
      [[url, { labels }, {}], /Expected Registry/],
    ];
    for (const [args, message] of invalid) assert.throws(() => new RemoteWrite(...args), { message });
    assert.throws(() => new RemoteWrite(url, { labels }).start({ interval: '5' }), /interval must be/);
    assert.throws(() => new RemoteWrite(url, { labels }).start(5000), /start\(\) expected options/);
    assert.ok(new RemoteWrite({ href: url }, { labels }));
    assert.throws(
      () => new RemoteWrite('x://user:secret@host', { labels }),
      ({ message }) => !/secret/.test(message),
    );
  });
});
