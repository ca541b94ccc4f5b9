'use strict';

// Deep imports of prom-client's small classes, as existing test suites use them.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { Counter, Histogram, Registry, openMetricsContentType } = require('prom-client-cluster');
const { getLabels, isObject } = require('prom-client-cluster/lib/util');
const TimeWindowQuantiles = require('prom-client-cluster/lib/timeWindowQuantiles');
const Exemplar = require('prom-client-cluster/lib/exemplar.js');
const { Metric } = require('prom-client-cluster/lib/metric');
const stock = {
  util: require('prom-client/lib/util'),
  TimeWindowQuantiles: require('prom-client/lib/timeWindowQuantiles'),
};

describe('deep import lib/util', () => {
  it('deep import lib/util has getLabels(), with the results and errors of prom-client', () => {
    const calls = [
      [[], []],
      [
        ['a', 'b'],
        ['1', 2],
      ],
      [['a', 'b'], ['1']],
      [['a'], ['1', '2']],
      [['a'], [{ a: '1' }]],
      [
        ['a', 'b'],
        [{ b: 2 }, 'ignored'],
      ],
    ];
    const outcome = (run, args) => {
      try {
        return run(...args);
      } catch (error) {
        return error.message;
      }
    };
    for (const args of calls) assert.deepEqual(outcome(getLabels, args), outcome(stock.util.getLabels, args));
  });

  it('deep import lib/util has isObject(), with the results of prom-client', () => {
    for (const value of [{}, [], Object.create(null), new Map(), null, undefined, 0, '', () => 1]) {
      assert.equal(isObject(value), stock.util.isObject(value));
    }
  });
});

describe('deep import lib/timeWindowQuantiles', () => {
  it('deep import lib/timeWindowQuantiles rotates its buffers with the window and drops old values', t => {
    t.mock.timers.enable({ apis: ['Date'] });
    const [ours, theirs] = [new TimeWindowQuantiles(5, 5), new stock.TimeWindowQuantiles(5, 5)];
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
      const [ours, theirs] = [new TimeWindowQuantiles(...args), new stock.TimeWindowQuantiles(...args)];
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
