'use strict';

// A large registry is written in slices that leave the loop to the application, from numbers of one instant.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { promisify } = require('node:util');
const { describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');

const {
  Registry,
  Counter,
  Gauge,
  Histogram,
  Summary,
  openMetricsContentType,
  prometheusContentType,
} = require('../..');
const { PAGES } = require('../../lib/registry/metric-view');
const { labelValue, number } = require('../prom-client/fixtures/property-programs');

const SERIES = 10_000;

function largeRegistry() {
  const registry = new Registry();
  const registers = [registry];
  const counter = new Counter({ name: 'many', help: 'h', labelNames: ['i', 'kind'], registers });
  for (let i = 0; i < SERIES; i++) counter.inc({ i, kind: 'ünïcode ☃' }, i);
  const histogram = new Histogram({ name: 'took', help: 'h', labelNames: ['i'], buckets: [1, 5], registers });
  const summary = new Summary({ name: 'size', help: 'h', percentiles: [0, 0.5, 1], registers });
  for (let i = 1; i <= 100; i++) {
    histogram.observe({ i }, i % 7);
    summary.observe(i);
  }
  return { registry, counter, histogram, summary };
}

/**
 * Calls back in each turn of the loop until a promise is settled; resolves with the number of turns and the
 * result.
 */
async function whileWaiting(promise, onTurn = () => {}) {
  let turns = 0;
  const turn = () => {
    turns++;
    onTurn();
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const result = await promise;
  clearImmediate(next);
  return { turns, result };
}

describe('a registry with many series', () => {
  it('a registry with many series yields the event loop while its page is rendered', async () => {
    const { registry } = largeRegistry();
    for (const read of [() => registry.metrics(), () => registry.metricsBytes()]) {
      const { turns } = await whileWaiting(read());
      assert.ok(turns > 1, `${turns} turns`);
    }
  });

  it('a registry with many series shows the numbers at the time of the call, whatever is recorded, removed or reset during rendering', async () => {
    const { registry, counter, histogram, summary } = largeRegistry();
    const expected = await registry.metrics();
    let next = 0;
    const disturb = () => {
      for (let i = 0; i < 50; i++, next++) {
        counter.inc({ i: next, kind: 'ünïcode ☃' }, 1e9);
        counter.inc({ i: `new ${next}` });
        counter.remove({ i: SERIES - next, kind: 'ünïcode ☃' });
        histogram.observe({ i: next }, 1e9);
      }
    };
    const { result } = await whileWaiting(registry.metrics(), disturb);
    assert.ok(result === expected, 'another page');
    assert.ok(next > 50, `${next} disturbances`);
    const before = registry.metrics();
    registry.resetMetrics();
    summary.observe(5000);
    const text = await before;
    assert.ok(/^size_count 100$/m.test(text));
    assert.ok(/^many\{i="7000",kind="ünïcode ☃"\} 7000$/m.test(text));
    assert.doesNotMatch(await registry.metrics(), /^many\{/m);
  });

  it('a registry with many series shows the exemplars at the time of the call, whatever is recorded, removed or compacted during rendering', async t => {
    t.mock.timers.enable({ apis: ['Date'] });
    const registry = new Registry(openMetricsContentType);
    const options = { help: 'h', labelNames: ['i'], registers: [registry], enableExemplars: true };
    const counter = new Counter({ name: 'many', ...options });
    const histogram = new Histogram({ name: 'took', buckets: [1, 5], ...options });
    const record = (i, trace) => {
      counter.inc({ labels: { i }, exemplarLabels: { trace } });
      histogram.observe({ labels: { i }, value: i % 7, exemplarLabels: { trace } });
    };
    for (let i = 0; i < SERIES; i += 2) record(i, `at first ${i}`);
    const expected = await registry.metrics();
    assert.ok(/^many_total\{i="7000"\} 1 # \{trace="at first 7000"\} 1 0$/m.test(expected));
    let next = 0;
    const { result } = await whileWaiting(registry.metrics(), () => {
      for (let i = 0; i < 200; i++, next++) record(SERIES - next, `later ${next}`);
      histogram.zero({ i: next });
      counter.remove({ i: next });
    });
    assert.ok(result === expected, 'another page');
    assert.ok(next > 200, `${next} disturbances`);
    assert.match(await registry.metrics(), /^many_total\{i="9900"\} 2 # \{trace="later 100"\} 1 0$/m);

    const before = await registry.metrics();
    const page = registry.metrics();
    // Other label sets now use the rows.
    for (let i = 0; i < SERIES - 10; i++) counter.remove({ i });
    const small = await registry.getSingleMetricAsString('many');
    assert.ok(small.split('\n').length < 20, small);
    for (let i = SERIES; i < 2 * SERIES; i++) record(i, `new ${i}`);
    assert.ok((await page) === before, 'another page');
  });

  it('a registry with many series is rendered even if timers are mocked', async t => {
    const { registry } = largeRegistry();
    t.mock.timers.enable({ apis: ['setImmediate', 'setTimeout', 'Date'] });
    assert.ok(/^many\{/m.test(await registry.metrics()));
  });
});

describe('a page rendered in slices', () => {
  const TYPES = { Counter: 'inc', Gauge: 'set', Histogram: 'observe', Summary: 'observe' };
  const step = fc.record({
    type: fc.constantFrom(...Object.keys(TYPES)),
    remove: fc.boolean(),
    labels: fc.dictionary(fc.constantFrom('a', 'b'), labelValue, { maxKeys: 2, noNullPrototype: true }),
    value: number.filter(value => value >= 0),
  });
  const setting = fc.record({
    steps: fc.array(step, { maxLength: 60, size: 'max' }),
    openMetrics: fc.boolean(),
    defaults: fc.dictionary(fc.constantFrom('a', 'env', 'le', 'quantile'), labelValue, {
      maxKeys: 2,
      noNullPrototype: true,
    }),
    hasLabels: fc.boolean(),
  });

  it('a page rendered in slices equals the page rendered at once', async () => {
    await fc.assert(
      fc.asyncProperty(setting, async ({ steps, openMetrics, defaults, hasLabels }) => {
        const registry = new Registry(openMetrics ? openMetricsContentType : undefined);
        registry.setDefaultLabels(defaults);
        const classes = { Counter, Gauge, Histogram, Summary };
        const metrics = Object.fromEntries(
          Object.entries(classes).map(([type, Class]) => [
            type,
            new Class({
              name: type,
              help: 'h',
              labelNames: hasLabels ? ['a', 'b'] : [],
              registers: [registry],
              enableExemplars: openMetrics,
            }),
          ]),
        );
        for (const { type, remove, labels, value } of steps) {
          const given = hasLabels ? labels : {};
          if (remove && hasLabels) metrics[type].remove(given);
          else if (openMetrics && (type === 'Counter' || type === 'Histogram')) {
            metrics[type][TYPES[type]]({ labels: given, value, exemplarLabels: { trace: 'x' } });
          } else metrics[type][TYPES[type]](given, value);
        }
        // As a scraper gets it: a lone surrogate has no UTF-8 encoding.
        const pages = await registry[PAGES](['openmetrics', 'text'].map(format => ({ format, gzip: false })));
        for (const [i, contentType] of [openMetricsContentType, prometheusContentType].entries()) {
          registry.setContentType(contentType);
          assert.equal(String(pages[i]), String(Buffer.from(await registry.metrics())));
        }
      }),
      { numRuns: 200 },
    );
  });
});

it('a large registry is written in a sandbox without `performance`', async () => {
  const program = `delete globalThis.performance;
    const { Registry, Gauge } = require(${JSON.stringify(require.resolve('../..'))});
    const registry = new Registry();
    const gauge = new Gauge({ name: 'many', help: 'h', labelNames: ['i'], registers: [registry] });
    for (let i = 0; i < ${SERIES}; i++) gauge.set({ i }, i);
    registry.metrics().then(page => console.log(page.split('\\n').length));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program]);
  assert.equal(Number(stdout), SERIES + 3);
});
