'use strict';

// time(), trackInProgress(), timers for `using`, value(), removeMatching(), setTotal(),
// registry.getOrCreate().

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');
const { METRIC_CLASSES } = require('../fixtures/metric-types');

const made = (Type, config) =>
  new Type({ name: 'm', help: 'h', labelNames: ['a'], registers: [], ...config });

for (const Type of [Histogram, Summary]) {
  describe(`${Type.name}.time()`, () => {
    it(`${Type.name}.time() observes a call and returns its result, also what cannot be tried for a promise`, () => {
      const metric = made(Type);
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      for (const given of [42, undefined]) {
        const result = metric.time({ a: '1' }, () => given);
        assert.equal(result, given);
      }
      assert.ok(metric.time(() => proxy) === proxy);
      assert.equal(metric.value({ a: '1' }).count, 2);
      assert.equal(metric.value().count, 1);
    });

    it(`${Type.name}.time() observes an asynchronous call when its promise, or thenable, is settled, with the labels of the call`, async () => {
      const metric = made(Type);
      const labels = { a: '1' };
      let resolve;
      const result = metric.time(labels, () => new Promise(settle => (resolve = settle)));
      labels.a = '2';
      assert.equal(metric.value({ a: '1' }), undefined);
      resolve('done');
      assert.equal(await result, 'done');
      assert.equal(metric.value({ a: '1' }).count, 1);
      assert.equal(await metric.time(() => ({ then: settle => settle(5) })), 5);
      assert.equal(metric.value().count, 1);
    });

    it(`${Type.name}.time() observes calls that fail, and fails with their error`, async () => {
      const metric = made(Type);
      const error = new Error('of the call');
      const fail = () => {
        throw error;
      };
      assert.throws(() => metric.time(fail), error);
      const failing = metric.time(async () => fail());
      await assert.rejects(failing, error);
      assert.equal(metric.value().count, 2);
    });

    it(`${Type.name}.time() refuses wrong arguments before it calls the function`, () => {
      const metric = made(Type);
      const call = () => assert.fail('called');
      assert.throws(() => metric.time({ b: '1' }, call), /^Error: Added label "b" is not included/);
      assert.throws(() => metric.time('1', call), /^TypeError: time\(\) expected an object of labels: '1'/);
      assert.throws(() => metric.time({ a: '1' }), /^TypeError: time\(\) expected a function: undefined/);
    });
  });
}

describe('gauge.trackInProgress()', () => {
  it('gauge.trackInProgress() counts what is in progress', async () => {
    const gauge = made(Gauge);
    const seen = [];
    const inProgress = () => seen.push(gauge.value({ a: '1' }));
    const later = gauge.trackInProgress({ a: '1' }, async () => {
      inProgress();
      await null;
      return 'later';
    });
    assert.equal(gauge.trackInProgress({ a: '1' }, inProgress), 2);
    assert.equal(gauge.value({ a: '1' }), 1);
    assert.equal(await later, 'later');
    assert.equal(gauge.value({ a: '1' }), 0);
    assert.deepEqual(seen, [1, 2]);
  });

  it('gauge.trackInProgress() counts down if the function fails', async () => {
    const gauge = made(Gauge);
    const fail = () => {
      throw new Error('of the call');
    };
    assert.throws(() => gauge.trackInProgress(fail), /of the call/);
    await assert.rejects(gauge.trackInProgress(async () => fail()));
    assert.equal(gauge.value(), 0);
  });
});

for (const Type of [Gauge, Histogram, Summary]) {
  it(`a timer of a ${Type.name} that is disposed of records once, with or without end()`, () => {
    const metric = made(Type);
    const recorded = [];
    for (const method of ['set', 'observe']) metric[method] = labels => recorded.push(labels.a);
    const left = metric.startTimer({ a: 'left' });
    left[Symbol.dispose]();
    left[Symbol.dispose]();
    const ended = metric.startTimer({ a: 'start' });
    ended({ a: 'ended' });
    ended[Symbol.dispose]();
    metric.labels('child').startTimer()[Symbol.dispose]();
    assert.deepEqual(recorded, ['left', 'ended', 'child']);
  });
}

describe('metric.value()', () => {
  it('metric.value() is a number of counters and gauges', () => {
    const [counter, gauge] = [made(Counter), made(Gauge)];
    counter.inc({ a: 1 }, 2);
    gauge.set({ a: '1' }, NaN);
    gauge.set(-3);
    assert.equal(counter.value({ a: '1' }), 2);
    assert.equal(gauge.value({ a: 1 }), NaN);
    assert.equal(gauge.value({}), -3);
  });

  it('metric.value() is count and sum of histograms and summaries', () => {
    for (const Type of [Histogram, Summary]) {
      const metric = made(Type);
      for (const value of [1, 2]) metric.observe({ a: '1' }, value);
      assert.deepEqual(metric.value({ a: '1' }), { count: 2, sum: 3 });
    }
  });

  it('metric.value() is undefined if there is no such series, and creates none', async () => {
    const counter = made(Counter);
    assert.equal(counter.value({ a: '1' }), undefined);
    assert.equal(counter.value(), undefined);
    assert.deepEqual((await counter.get()).values, []);
    assert.throws(() => counter.value({ b: 1 }), /Added label "b" is not included/);
    for (const wrong of ['a', 5, [], new Map()])
      assert.throws(() => counter.value(wrong), /^TypeError: value\(\) expected an object of labels: /);
  });

  it('metric.value() gives way to an option or a method of a program with its name', () => {
    const gauge = made(Gauge, { value: 5, time: 'own' });
    gauge.set({ a: '1' }, 2);
    assert.equal(gauge.value, 5);
    assert.equal(gauge.time, 'own');
    class Own extends Gauge {
      value() {
        return 'own';
      }
    }
    assert.equal(made(Own).value(), 'own');
  });
});

describe('metric.removeMatching()', () => {
  const labelNames = ['tenant', 'path'];
  const filled = Type => {
    const metric = made(Type, { labelNames, buckets: [1] });
    const record = Type === Gauge ? 'set' : Type === Counter ? 'inc' : 'observe';
    for (const tenant of ['a', 'b']) for (const path of ['x', 'y']) metric[record]({ tenant, path }, 1);
    metric[record]({ path: 'x' }, 1);
    return metric;
  };
  const labelsOf = async metric => {
    const all = (await metric.get()).values.map(({ labels: { tenant, path } }) => `${tenant} ${path}`);
    return [...new Set(all)];
  };

  for (const Type of METRIC_CLASSES) {
    it(`metric.removeMatching() drops all series of a ${Type.name} that have the labels`, async () => {
      const metric = filled(Type);
      const child = metric.labels({ tenant: 'a', path: 'x' });
      assert.equal(metric.removeMatching({ tenant: 'a' }), 2);
      assert.equal(metric.removeMatching({ tenant: 'a' }), 0);
      assert.deepEqual(await labelsOf(metric), ['b x', 'b y', 'undefined x']);
      // A child begins from zero.
      (child.inc ?? child.observe)(1);
      const value = metric.value({ tenant: 'a', path: 'x' });
      assert.equal(value.count ?? value, 1);
    });
  }

  it('metric.removeMatching() compares values as text, and undefined with series that lack the label', async () => {
    const metric = made(Counter, { labelNames });
    metric.inc({ tenant: 1, path: 'x' });
    metric.inc({ tenant: '2', path: 'x' });
    metric.inc({ path: 'x' });
    assert.equal(metric.removeMatching({ tenant: 2 }), 1);
    assert.equal(metric.removeMatching({ tenant: '1' }), 1);
    assert.equal(metric.removeMatching({ tenant: 'never' }), 0);
    metric.inc({ tenant: 'a', path: 'x' });
    assert.equal(metric.removeMatching({ tenant: undefined }), 1);
    assert.deepEqual(await labelsOf(metric), ['a x']);
  });

  it('metric.removeMatching() takes all labels into account, and none for all series', async () => {
    const metric = filled(Counter);
    assert.equal(metric.removeMatching({ tenant: 'b', path: 'y' }), 1);
    assert.deepEqual(await labelsOf(metric), ['a x', 'a y', 'b x', 'undefined x']);
    assert.equal(metric.removeMatching({}), 4);
    assert.deepEqual(await labelsOf(metric), []);
  });

  it('metric.removeMatching() refuses labels that the metric does not have', async () => {
    const metric = filled(Counter);
    assert.throws(() => metric.removeMatching({ tennant: 'a' }), /Added label "tennant" is not included/);
    assert.equal((await labelsOf(metric)).length, 5);
    for (const wrong of [undefined, null, 5, 'tenant', [], new Map([['tenant', 'a']]), Promise.resolve({})])
      assert.throws(
        () => metric.removeMatching(wrong),
        /^TypeError: removeMatching\(\) expected an object of labels: /,
      );
    assert.equal((await labelsOf(metric)).length, 5);
    const plain = made(Counter, { labelNames: [] });
    assert.equal(plain.removeMatching({}), 1);
    assert.throws(() => plain.removeMatching({ tenant: 'a' }), /Added label/);
  });
});

describe('counter.setTotal()', () => {
  /** What a counter shows after each total. */
  const shown = (counter, totals) =>
    totals.map(total => {
      counter.setTotal({ a: '1' }, total);
      return counter.value({ a: '1' });
    });

  it('counter.setTotal() adds what the total grew; a lower total has started again', () => {
    assert.deepEqual(shown(made(Counter), [5, 5, 7, 3, 3, 4, 0, 2]), [5, 5, 7, 10, 10, 11, 11, 13]);
  });

  it('counter.setTotal() keeps totals by label set, and takes any way to write one', () => {
    const counter = made(Counter);
    counter.setTotal(4);
    counter.setTotal({}, 6);
    counter.setTotal({ a: 1 }, 2);
    counter.curry({ a: '1' }).setTotal(5);
    counter.curry({}).setTotal({ a: '1' }, 6);
    counter.inc({ a: 1 }, 10);
    assert.deepEqual([counter.value(), counter.value({ a: 1 })], [6, 16]);
  });

  it('counter.setTotal() counts after reset() what has been added since, after remove() all of it', () => {
    const counter = made(Counter);
    assert.deepEqual(shown(counter, [5]), [5]);
    counter.reset();
    assert.deepEqual(shown(counter, [7]), [2]);
    counter.remove('1');
    assert.deepEqual(shown(counter, [9]), [9]);
    counter.removeMatching({ a: '1' });
    assert.deepEqual(shown(counter, [10, 11]), [10, 11]);
  });

  it('counter.setTotal() adds nothing for label sets beyond maxSeries, of which no totals are stored', () => {
    const counter = made(Counter, { maxSeries: 1 });
    for (const a of [1, 2, 3, 2, 3]) counter.setTotal({ a }, 10 * a);
    assert.deepEqual([counter.value({ a: 1 }), counter.value({ a: 'overflow' })], [10, 0]);
  });

  it('counter.setTotal() refuses what inc() refuses, and NaN changes nothing', () => {
    const counter = made(Counter);
    counter.setTotal({ a: '1' }, 5);
    for (const total of ['6', undefined, Infinity, null])
      assert.throws(() => counter.setTotal({ a: '1' }, total), /^TypeError: Value is not a valid number/);
    assert.throws(() => counter.setTotal({ a: '1' }, -1), /^Error: It is not possible to decrease a counter/);
    assert.throws(() => counter.setTotal({ b: '1' }, 1), /^Error: Added label "b" is not included/);
    assert.deepEqual(shown(counter, [NaN, 6]), [5, 6]);
  });
});

const FACTOR = 'nativeHistogramBucketFactor';

describe('registry.getOrCreate()', () => {
  const config = { name: 'm', help: 'h', labelNames: ['a'] };

  for (const Type of METRIC_CLASSES) {
    it(`registry.getOrCreate() returns the ${Type.name} that exists, or creates it in this registry`, () => {
      const [registry, other] = [new Registry(), new Registry()];
      const metric = registry.getOrCreate(Type, { ...config, registers: [other] });
      assert.ok(metric instanceof Type);
      assert.equal(registry.getSingleMetric('m'), metric);
      assert.equal(other.getSingleMetric('m'), undefined);
      assert.equal(registry.getOrCreate(Type, { ...config, help: 'another' }), metric);
    });
  }

  for (const [what, Type, first, second, text] of [
    ['labels', Counter, {}, { labelNames: ['b'] }, /labelNames \[ 'a' \], not \[ 'b' \]$/],
    ['buckets', Histogram, { buckets: [1, 2] }, { buckets: [1] }, /buckets \[ 1, 2 \], not \[ 1 \]$/],
    ['factors', Histogram, { [FACTOR]: 1.1 }, {}, /BucketFactor 1\.1, not undefined$/],
    ['percentiles', Summary, { percentiles: [0.5] }, { percentiles: [0.9] }, /\[ 0\.5 \], not \[ 0\.9 \]$/],
  ]) {
    it(`registry.getOrCreate() says what differs: ${what}`, () => {
      const registry = new Registry();
      registry.getOrCreate(Type, { ...config, ...first });
      const other = () => registry.getOrCreate(Type, { ...config, ...second });
      assert.throws(other, { name: 'Error', message: text });
      assert.throws(other, /^Error: A metric with the name m has already been registered\. It /);
    });
  }

  it('registry.getOrCreate() says what differs: type', () => {
    const registry = new Registry();
    registry.getOrCreate(Counter, config);
    assert.throws(() => registry.getOrCreate(Gauge, config), /It is a counter, not a gauge$/);
  });

  it('registry.getOrCreate() sorts bounds before it compares them, and knows the default', () => {
    const registry = new Registry();
    const histogram = registry.getOrCreate(Histogram, { ...config, buckets: [2, 1] });
    assert.equal(registry.getOrCreate(Histogram, { ...config, buckets: [1, 2] }), histogram);
    assert.throws(() => registry.getOrCreate(Histogram, config), /buckets/);
  });

  it('registry.getOrCreate() does not take a metric for one of a derived class', () => {
    class Own extends Counter {}
    const registry = new Registry();
    registry.getOrCreate(Counter, config);
    assert.throws(() => registry.getOrCreate(Own, config), /It is not of the class Own$/);
    const own = new Registry().getOrCreate(Own, config);
    assert.ok(own instanceof Own);
  });

  it('registry.getOrCreate() checks the configuration as the constructor does', () => {
    const registry = new Registry();
    assert.throws(() => registry.getOrCreate(Counter), /expected a config object|Missing mandatory/);
    registry.getOrCreate(Counter, config);
    assert.throws(() => registry.getOrCreate(Counter, { ...config, help: '' }), /Missing mandatory help/);
  });
});
