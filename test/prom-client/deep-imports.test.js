'use strict';

// Deep imports of prom-client's small classes, as existing test suites use them.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { Counter, Histogram, Registry, openMetricsContentType } = require('prom-client-cluster');
const TimeWindowQuantiles = require('prom-client-cluster/lib/timeWindowQuantiles');
const Exemplar = require('prom-client-cluster/lib/exemplar.js');
const { Metric } = require('prom-client-cluster/lib/metric');
const StockQuantiles = require('prom-client/lib/timeWindowQuantiles');

const samplesOf = (...values) => ({ name: 'n', help: 'h', type: 'gauge', aggregator: 'range', values });
const rangeOf = samples => {
  const values = samples.map(({ value }) => value);
  return Math.max(...values) - Math.min(...values);
};

/** By file and function: arguments of calls, which have the results and errors of prom-client. */
const CALLS = {
  // prettier-ignore
  'util getLabels': [
    ...[[[], []], [['a', 'b'], ['1', 2]], [['a', 'b'], ['1']], [['a'], ['1', '2']], [['a'], [{ a: '1' }]]],
    [['a', 'b'], [{ b: 2 }, 'ignored']],
  ],
  'util isObject': [
    [{}],
    [[]],
    [Object.create(null)],
    [new Map()],
    [null],
    [undefined],
    [0],
    [''],
    [() => 1],
  ],
  'util hashObject': [[{ b: 'x', a: 1 }], [{}], [{ a: undefined }], [{ b: 1, a: 2 }, ['b', 'a']]],
  'validation validateLabelName': [[], [['a', '__b']], [['a', '1']]],
  'validation validateLabel': [
    [['a'], { b: 1 }],
    [['a'], { a: 1 }],
  ],
  'metricAggregators AggregatorFactory': [[rangeOf]],
};

describe('deep imports of functions', () => {
  const outcome = (run, args) => {
    try {
      const result = run(...args);
      if (typeof result !== 'function') return result;
      const one = samplesOf({ value: 1, labels: { a: '1' } }, { value: 5, labels: { a: '2' } });
      return [result([one, samplesOf({ value: 4, labels: { a: '1' } })]), result([])];
    } catch (error) {
      return error.message;
    }
  };
  for (const [name, calls] of Object.entries(CALLS)) {
    it(`deep import lib/${name}() has the results and errors of prom-client`, () => {
      const [file, key] = name.split(' ');
      const ours = require(`prom-client-cluster/lib/${file}`)[key];
      const theirs = require(`prom-client/lib/${file}`)[key];
      for (const args of calls) assert.deepEqual(outcome(ours, args), outcome(theirs, args));
    });
  }
});

describe('deep import lib/timeWindowQuantiles', () => {
  it('deep import lib/timeWindowQuantiles rotates its buffers with the window and drops old values', t => {
    t.mock.timers.enable({ apis: ['Date'] });
    const [ours, theirs] = [new TimeWindowQuantiles(5, 5), new StockQuantiles(5, 5)];
    for (let second = 0; second < 12; second++) {
      if (second % 4 === 0) for (const quantiles of [ours, theirs]) quantiles.push(second);
      assert.equal(ours.percentile(1), second - (second % 4), `second ${second}`);
      theirs.percentile(1);
      assert.equal(ours.currentBuffer, theirs.currentBuffer, `second ${second}`);
      t.mock.timers.tick(1001);
    }
    assert.equal(ours.ringBuffer.length, 5);
    ours.push(1);
    for (const digest of ours.ringBuffer) assert.ok(digest.centroids.size > 0);
    ours.compress();
    ours.reset();
    for (const digest of ours.ringBuffer) assert.equal(digest.centroids.size, 0);
  });

  it('deep import lib/timeWindowQuantiles does not rotate without a window', () => {
    for (const args of [[], [5], [1, 1], [5, 5]]) {
      const [ours, theirs] = [new TimeWindowQuantiles(...args), new StockQuantiles(...args)];
      assert.equal(ours.durationBetweenRotatesMillis, theirs.durationBetweenRotatesMillis);
    }
  });
});

describe('deep imports lib/exemplar and lib/metric', () => {
  it("deep imports lib/exemplar and lib/metric are the classes of the package's exemplars and metrics", async () => {
    const registers = [new Registry(openMetricsContentType)];
    const counter = new Counter({ name: 'c', help: 'h', enableExemplars: true, registers });
    counter.inc({ exemplarLabels: { a: 'b' } });
    const { exemplar } = (await counter.get()).values[0];
    assert.ok(exemplar instanceof Exemplar);
    assert.equal(exemplar.constructor.name, 'Exemplar');
    assert.deepEqual(Object.keys(exemplar), ['labelSet', 'value', 'timestamp']);
    assert.ok(counter instanceof Metric);
    assert.ok(new Histogram({ name: 'h', help: 'h', registers }) instanceof Metric);
  });

  it('a class derived from Metric is checked, reset and registered as in prom-client', async () => {
    for (const { Metric: Base, client } of [
      { Metric, client: { Registry, Counter } },
      { Metric: require('prom-client/lib/metric').Metric, client: require('prom-client') },
    ]) {
      class Constant extends Base {
        get = () => ({
          name: this.name,
          help: this.help,
          type: 'gauge',
          values: Object.values(this.hashMap),
        });
        reset() {
          this.hashMap = { '': { value: 1, labels: {} } };
        }
      }
      const registry = new client.Registry();
      const registers = [registry];
      assert.throws(() => new Constant({ name: 'a', registers }), /^Error: Missing mandatory help/);
      const constant = new Constant({ name: 'a', help: 'h', registers });
      assert.deepEqual(registry.getMetricsAsArray(), [constant]);
      assert.match(await registry.metrics(), /^# HELP a h\n# TYPE a gauge\na 1\n/);
      assert.throws(() => new Constant({ name: 'a', help: 'h', registers }), /already been registered/);
      assert.throws(
        () => new Constant({ name: 'e', help: 'h', registers, enableExemplars: true }),
        /^TypeError: Exemplars are supported only on OpenMetrics registries$/,
      );
      const counter = new client.Counter({ name: 'b', help: 'h', registers: [] });
      assert.deepEqual([constant instanceof Base, counter instanceof Base], [true, true]);
      assert.deepEqual([constant instanceof Constant, counter instanceof Constant], [true, false]);
    }
  });
});
