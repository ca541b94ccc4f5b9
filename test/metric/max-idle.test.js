'use strict';

// `maxIdleSeconds`: series that nobody uses any more leave. That each type of metric starts at nothing again
// is in every-type.test.js. The clock is that of test/fixtures/idle-clock.js.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { describe, it } = require('node:test');
const client = require('../..');
const { Counter, Gauge, Histogram, Summary, Registry } = client;
const { METRIC_CLASSES } = require('../fixtures/metric-types');
const { MovedClock } = require('../fixtures/idle-clock');
const { makeWorker } = require('../fixtures/unit-scrape');

const IDLE = 600;

/** The latest that a series may leave. */
const LATEST = IDLE * (1 + 2 / 16);

/** A metric named m, of its own registry. */
function make(Type, config = {}, registry = new Registry()) {
  const options = { name: 'm', help: 'h', labelNames: ['a', 'b'], maxIdleSeconds: IDLE };
  return new Type({ ...options, registers: [registry], ...config });
}

/** @returns {string[]} the values of the label a */
const seriesOf = metric => Object.values(metric.hashMap).map(({ labels }) => labels.a);

const OPENMETRICS = () => new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
const X = { a: 'x', b: 'y' };

/** Calls of recorders: with the labels X, of their child, and of what is curried with a, and takes b. */
const waysOf = (method, ...values) => ({
  [`${method}(${values})`]: metric => metric[method](X, ...values),
  [`${method}(${values}) of a child`]: metric => {
    const child = metric.labels(X);
    return () => child[method](...values);
  },
  [`${method}(${values}) of a child with values`]: metric => {
    const child = metric.labels('x', 'y');
    return () => child[method](...values);
  },
  [`${method}(${values}) of labels() each time`]: metric => metric.labels(X)[method](...values),
  [`${method}(${values}) of curry()`]: metric => {
    const curried = metric.curry({ a: 'x' });
    return () => curried[method]({ b: 'y' }, ...values);
  },
  [`${method}(${values}) of curry() with all labels`]: metric => {
    const curried = metric.curry(X);
    return () => curried[method](...values);
  },
});

/** What begins with a call keeps a series only by its end. */
const timersOf = {
  'a timer': metric => metric.startTimer(X)(),
  'a timer with labels at its end': metric => metric.startTimer({ a: 'x' })({ b: 'y' }),
  'a timer of a child': metric => {
    const child = metric.labels(X);
    return () => child.startTimer()();
  },
  'a timer of curry()': metric => metric.curry({ a: 'x' }).startTimer({ b: 'y' })(),
};

const USES = [
  {
    Type: Counter,
    uses: {
      ...waysOf('inc'),
      ...waysOf('inc', 0),
      setTotal: metric => metric.setTotal(X, 7),
      'setTotal of curry()': metric => metric.curry({ a: 'x' }).setTotal({ b: 'y' }, 7),
      'inc with an exemplar': metric => metric.inc({ labels: X, exemplarLabels: { t: '1' } }),
    },
  },
  {
    Type: Gauge,
    uses: {
      ...waysOf('set', 5),
      ...waysOf('inc', 0),
      ...waysOf('dec'),
      ...waysOf('setToCurrentTime'),
      ...timersOf,
      trackInProgress: metric => metric.trackInProgress(X, () => {}),
    },
  },
  ...[{}, { nativeHistogramBucketFactor: 1.1 }, { nativeHistogramBucketFactor: 1.1, buckets: [] }].map(
    options => ({
      Type: Histogram,
      options,
      uses: {
        ...waysOf('observe', 0.5),
        ...timersOf,
        zero: metric => metric.zero(X),
        time: metric => metric.time(X, () => {}),
        'observe with an exemplar': metric =>
          metric.observe({ labels: X, value: 1, exemplarLabels: { t: '1' } }),
      },
    }),
  ),
  ...[{}, { maxAgeSeconds: 10, ageBuckets: 2 }].map(options => ({
    Type: Summary,
    options,
    uses: { ...waysOf('observe', 0.5), ...timersOf, time: metric => metric.time(X, () => {}) },
  })),
];

/** What is no use of a series. */
const READS = {
  value: metric => metric.value(X),
  'value of curry()': metric => metric.curry({ a: 'x' }).value({ b: 'y' }),
  labels: metric => metric.labels(X),
  curry: metric => metric.curry(X),
  get: metric => metric.get(),
  hashMap: metric => metric.hashMap,
  'a timer that does not end': metric => metric.startTimer?.(X),
  'another series': metric => (metric.inc ? metric.inc({ a: 'other' }) : metric.observe({ a: 'other' }, 1)),
};

describe('maxIdleSeconds: what is a use of a series', () => {
  for (const { Type, options, uses } of USES) {
    const config = { ...options, enableExemplars: Type === Counter || Type === Histogram };
    const title = `${Type.name}${options === undefined ? '' : ` with ${JSON.stringify(options)}`}`;
    /** A metric and a call of it that can be repeated. */
    const madeWith = use => {
      const metric = make(Type, config, OPENMETRICS());
      const result = use(metric);
      if (result instanceof Function) result();
      return { metric, repeat: result instanceof Function ? result : () => use(metric) };
    };

    it(`${title}: a series stays while it is used, in whatever way, and leaves when it is not`, async t => {
      const clock = new MovedClock(t);
      for (const [name, use] of Object.entries(uses)) {
        const { metric, repeat } = madeWith(use);
        for (let i = 0; i < 5; i++) {
          await clock.move(IDLE - 1);
          assert.deepEqual(seriesOf(metric), ['x'], name);
          repeat();
        }
        assert.equal(metric.expiredCount, 0, name);
        await clock.move(LATEST);
        assert.deepEqual(seriesOf(metric), [], name);
        repeat();
        assert.deepEqual([seriesOf(metric), metric.expiredCount], [['x'], 1], name);
      }
    });

    it(`${title}: reading a series does not keep it`, async t => {
      const clock = new MovedClock(t);
      for (const [name, read] of Object.entries(READS)) {
        const { metric } = madeWith(Object.values(uses)[0]);
        for (let i = 0; i < 12; i++) {
          await clock.move(LATEST / 12);
          await read(metric);
        }
        assert.ok(!seriesOf(metric).includes('x'), name);
      }
    });
  }
});

describe('maxIdleSeconds: what begins again', () => {
  it('children that are kept for hours count from zero, as often as their series expires', async t => {
    const clock = new MovedClock(t);
    const metric = make(Counter);
    const [child, other] = [metric.labels(X), metric.labels('x', 'y')];
    const curried = metric.curry({ a: 'x' });
    for (let life = 0; life < 40; life++) {
      child.inc(2);
      other.inc();
      curried.inc({ b: 'y' });
      assert.equal(metric.value(X), 4);
      await clock.move(life % 2 === 0 ? LATEST : 20 * IDLE);
      assert.deepEqual([metric.value(X), metric.seriesCount], [undefined, 0]);
    }
    assert.equal(metric.expiredCount, 40);
  });

  it('of the series that expired, a new one has no exemplar, no start, no observation', async t => {
    const clock = new MovedClock(t);
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    const registry = OPENMETRICS();
    const observe = metric => metric.observe({ labels: X, value: 3, exemplarLabels: { t: '1' } });
    const [native, summary] = [
      make(Histogram, { name: 'n', enableExemplars: true, nativeHistogramBucketFactor: 1.1 }, registry),
      make(Summary, { name: 's', percentiles: [0.5] }, registry),
    ];
    observe(native);
    summary.observe(X, 3);
    assert.match(await registry.metrics(), /# \{t="1"\}/);
    // Starts are read, as a scrape in the protobuf format does.
    await native.get();
    await clock.move(LATEST);
    assert.equal(native.seriesCount + summary.seriesCount, 0);
    t.mock.timers.setTime(9_000_000);
    native.observe(X, 40);
    summary.observe(X, 40);
    const page = await registry.metrics();
    assert.doesNotMatch(page, /t="1"/);
    assert.match(page, /^s\{quantile="0.5",a="x",b="y"\} 40$/m);
    assert.match(page, /^n_count\{a="x",b="y"\} 1$/m);
    assert.doesNotMatch(page, /_created(\{.*\})? (?!9000)/);
    const [{ createdTimestamp, exemplars, count = 1 }] = (await native.get()).nativeHistograms;
    assert.deepEqual([createdTimestamp, exemplars, count], [9000, [], 1]);
    assert.ok(native.quantile(0, X) > 30);
  });

  it('with a series, its last total is forgotten, and no sooner', async t => {
    const clock = new MovedClock(t);
    const metric = make(Counter);
    metric.setTotal(X, 10);
    for (let i = 0; i < 4; i++) {
      await clock.move(IDLE / 2);
      metric.inc(X);
    }
    metric.setTotal(X, 12);
    assert.equal(metric.value(X), 16);
    await clock.move(LATEST);
    assert.equal(metric.seriesCount, 0);
    metric.setTotal(X, 15);
    assert.equal(metric.value(X), 15);
    // A label that setTotal() has never had: the program has added its name.
    metric.labelNames.push('c');
    metric.inc({ c: 'z' });
    await clock.move(LATEST);
    assert.equal(metric.seriesCount, 0);
  });

  it('maxSeries has room again, and the overflow series stays while it is used', async t => {
    const clock = new MovedClock(t);
    const metric = make(Counter, { maxSeries: 2 });
    for (const a of ['1', '2', '3']) metric.inc({ a });
    const beyond = metric.labels({ a: '4' });
    for (let i = 0; i < 3; i++) {
      await clock.move(IDLE / 2);
      metric.inc({ a: '1' });
      beyond.inc();
    }
    // It has got a series of its own.
    assert.deepEqual(seriesOf(metric).sort(), ['1', '4', 'overflow']);
    metric.inc({ a: '5' });
    await clock.move(IDLE / 2);
    metric.inc({ a: '6' });
    await clock.move(LATEST - IDLE / 2);
    assert.deepEqual(seriesOf(metric), ['overflow']);
    await clock.move(LATEST);
    assert.deepEqual(seriesOf(metric), []);
  });
});

describe('maxIdleSeconds: what never leaves', () => {
  it('the series of a metric without labels, and default metrics in a registry with the option', async t => {
    const clock = new MovedClock(t);
    const registry = new Registry();
    registry.setMaxIdleSeconds(IDLE);
    t.after(client.collectDefaultMetrics({ register: registry, labels: { app: 'a' } }));
    const metric = make(Counter, { labelNames: [] }, registry);
    await registry.metrics();
    const defaults = registry.getMetricsAsArray().filter(each => each.seriesCount > 0);
    assert.ok(defaults.length > 10);
    await clock.move(10 * LATEST);
    assert.equal(metric.seriesCount, 1);
    const shown = defaults.filter(({ seriesCount, expiredCount }) => seriesCount === 0 || expiredCount > 0);
    assert.deepEqual(shown, []);
  });

  /** @type {Record<string, (registry: any) => any>} */
  const SCRAPES = {
    'metrics()': registry => registry.metrics(),
    'metricsBytes()': registry => registry.metricsBytes(),
    'getMetricsAsJSON()': registry => registry.getMetricsAsJSON(),
    'getSingleMetricAsString()': async registry => {
      for (const { name } of registry.getMetricsAsArray()) await registry.getSingleMetricAsString(name);
    },
    'the source of a worker': registry => makeWorker([registry]).source.prepare(1000, { capture: () => {} }),
  };

  /** How the hook of the metric m, or of one beside it, records. */
  const HOOKS = {
    'its own hook': record => ({ own: record }),
    'its own asynchronous hook': record => ({
      own: async () => {
        await new Promise(setImmediate);
        record();
      },
    }),
    'the hook of a metric before it': record => ({ before: record }),
    'the hook of a metric after it': record => ({ after: record }),
  };

  for (const [title, scrape] of Object.entries(SCRAPES)) {
    it(`what a hook has recorded in the last scrape by ${title}, however rare these are`, async t => {
      const clock = new MovedClock(t);
      for (const [hookTitle, hooksOf] of Object.entries(HOOKS)) {
        for (const isKept of [false, true]) {
          const registry = new Registry();
          let shown = ['1', '2'];
          const children = {};
          const record = () => {
            for (const a of shown)
              if (isKept) (children[a] ??= metric.labels({ a })).inc();
              else metric.inc({ a });
          };
          const { before, own, after } = hooksOf(record);
          const rest = { labelNames: [], registers: [registry] };
          make(Gauge, { ...rest, name: 'before', collect: before }, registry);
          const metric = make(Counter, { collect: own }, registry);
          make(Gauge, { ...rest, name: 'after', collect: after }, registry);
          const message = `${hookTitle}, ${isKept ? 'children' : 'labels'}`;
          metric.inc({ a: 'application' });
          await scrape(registry);
          for (let i = 0; i < 3; i++) {
            await clock.move(5 * LATEST);
            assert.deepEqual(seriesOf(metric), shown, message);
            await scrape(registry);
          }
          assert.deepEqual([metric.value({ a: '1' }), metric.value({ a: '2' })], [4, 4], message);
          shown = ['2'];
          // One scrape more, because a hook may be that of a metric before this one.
          for (let i = 0; i < 3; i++) await scrape(registry);
          await clock.move(LATEST);
          assert.deepEqual(seriesOf(metric), ['2'], message);
        }
      }
    });
  }

  it('scrapes of other registries do not age what a hook has recorded; use by the application neither', async t => {
    const clock = new MovedClock(t);
    const [rare, often] = [new Registry(), new Registry()];
    const metric = make(Gauge, { collect: () => metric.set({ a: '1' }, 1) }, rare);
    make(
      Gauge,
      {
        name: 'other',
        collect() {
          this.set({ a: '2' }, 1);
        },
      },
      often,
    );
    await rare.metrics();
    metric.set({ a: '1' }, 5);
    for (let i = 0; i < 20; i++) {
      await clock.move(IDLE / 2);
      await often.metrics();
    }
    assert.equal(metric.value({ a: '1' }), 5);
  });

  it('hooks that throw or reject leave nothing behind: what comes after them expires', async t => {
    const clock = new MovedClock(t);
    const registry = new Registry();
    const metric = make(Counter, {}, registry);
    for (const collect of [() => assert.fail(), () => Promise.reject(new Error('no'))]) {
      const failing = make(Gauge, { name: 'failing', collect }, registry);
      await assert.rejects(registry.metrics());
      await assert.rejects(failing.get());
      registry.removeSingleMetric('failing');
    }
    metric.inc({ a: '1' });
    await clock.move(LATEST);
    assert.equal(metric.seriesCount, 0);
  });
});

describe('maxIdleSeconds as an option', () => {
  it('anything but a positive finite number is refused, and nothing is registered', () => {
    for (const maxIdleSeconds of [0, -1, NaN, Infinity, '600', true, false, '', 5n, {}, [600]]) {
      const expected = {
        name: 'RangeError',
        code: 'PROM_CLIENT_INVALID_OPTION',
        message: /^maxIdleSeconds must be a positive finite number: /,
      };
      for (const Type of METRIC_CLASSES) {
        const registry = new Registry();
        for (const labelNames of [[], ['a']])
          assert.throws(() => make(Type, { maxIdleSeconds, labelNames }, registry), expected);
        assert.deepEqual(registry.getMetricsAsArray(), []);
      }
      const options = /** @type {any} */ ({ maxIdleSeconds });
      assert.throws(() => new Registry().setMaxIdleSeconds(options.maxIdleSeconds), expected);
      assert.throws(() => new client.AggregatorRegistry(options), expected);
      assert.throws(() => new client.WorkerRegistry(options), expected);
    }
  });

  it('the default of a registry is that of metrics created later with it as the first, unless they have one', async t => {
    const clock = new MovedClock(t);
    const [registry, other] = [new Registry(), new Registry()];
    const none = { maxIdleSeconds: undefined };
    const before = make(Counter, { ...none, name: 'before' }, registry);
    registry.setMaxIdleSeconds(IDLE);
    const after = make(Counter, { ...none, name: 'after' }, registry);
    const own = make(Counter, { name: 'own', maxIdleSeconds: 4 * IDLE }, registry);
    const second = make(Counter, { ...none, name: 'second', registers: [other, registry] });
    const first = make(Counter, { ...none, name: 'first', registers: [registry, other] });
    const nowhere = make(Counter, { ...none, registers: [] });
    registry.clear();
    const cleared = make(Counter, none, registry);
    const metrics = [before, after, own, second, first, nowhere, cleared];
    for (const metric of metrics) metric.inc({ a: 'x' });
    const counts = () => metrics.map(({ seriesCount }) => seriesCount);
    await clock.move(LATEST);
    assert.deepEqual(counts(), [1, 0, 1, 1, 0, 1, 1]);
    await clock.move(4 * LATEST);
    assert.deepEqual(counts(), [1, 0, 0, 1, 0, 1, 1]);
    const expiredCounts = metrics.map(({ expiredCount }) => expiredCount);
    assert.deepEqual(expiredCounts, [0, 1, 1, 0, 1, 0, 0]);
  });

  it('AggregatorRegistry and WorkerRegistry take it for metrics of their own', async t => {
    const clock = new MovedClock(t);
    for (const Type of [client.AggregatorRegistry, client.WorkerRegistry]) {
      const registry = new Type({ maxIdleSeconds: IDLE });
      const metric = make(Counter, { maxIdleSeconds: undefined }, /** @type {any} */ (registry));
      metric.inc({ a: 'x' });
      await clock.move(LATEST);
      assert.equal(metric.seriesCount, 0, Type.name);
      await registry.close();
    }
  });

  it('a metric that nobody has any more is garbage, although its timer is set', () => {
    const program = `
      const { setFlagsFromString } = require('node:v8');
      setFlagsFromString('--expose-gc');
      const gc = require('node:vm').runInNewContext('gc');
      const { Counter } = require('.');
      const refs = Array.from({ length: 50 }, () => {
        const options = { name: 'a', help: 'h', labelNames: ['a'], registers: [], maxIdleSeconds: 600 };
        const metric = new Counter(options);
        metric.inc({ a: 1 });
        return new WeakRef(metric);
      });
      setImmediate(() => {
        gc();
        setImmediate(() => {
          gc();
          console.log(refs.filter(ref => ref.deref() !== undefined).length);
        });
      });`;
    const options = { cwd: path.join(__dirname, '../..'), encoding: 'utf8' };
    const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], options);
    assert.deepEqual([status, stderr], [0, '']);
    assert.ok(Number(stdout) <= 1, `${stdout} of 50`);
  });
});
