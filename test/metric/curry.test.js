'use strict';

// metric.curry(): what it records is what the metric records with all labels.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const fc = require('fast-check');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');
const { METRIC_TYPES } = require('../fixtures/metric-types');

const NAMES = ['method', 'route', 'status'];
const GET = { method: 'GET', route: '/users' };

for (const { name, make, record } of METRIC_TYPES) {
  describe(`curry() of a ${name}`, () => {
    const made = (options = {}) =>
      make({ name: 'm', help: 'h', labelNames: NAMES, registers: [], ...options });
    const valuesOf = async metric => (await metric.get()).values;

    it(`curry() of a ${name} records in the series of all labels, as the metric does`, async () => {
      const metric = made();
      const expected = made();
      const byStatus = metric.curry({ method: 'GET' }).curry({ route: '/users' });
      const byRoute = metric.curry({ method: 'GET' });
      const all = metric.curry({ ...GET, status: 500 });
      for (const status of [200, '200', 404, 200, 404, 200, undefined, null, { toString: () => '404' }]) {
        for (const labels of [{ status }, { status, route: '/users' }]) {
          record('route' in labels ? byRoute : byStatus, labels, 2);
          record(expected, { ...GET, status }, 2);
        }
      }
      record(byStatus, {}, 3);
      record(expected, GET, 3);
      record(all, {}, 4);
      const method = ['inc', 'observe'].find(each => each in all);
      all[method](4);
      for (let i = 0; i < 2; i++) record(expected, { ...GET, status: 500 }, 4);
      assert.deepEqual(await valuesOf(metric), await valuesOf(expected));
      assert.deepEqual(byStatus.value({ status: 404 }), expected.value({ ...GET, status: 404 }));
      assert.equal(byStatus.value({ status: 'none' }), undefined);
    });

    it(`curry() of a ${name} makes children, and removes series, of the other labels in their order`, async () => {
      const metric = made({ labelNames: ['status', 'method', 'route'] });
      const curried = metric.curry({ method: 'GET' });
      const child = curried.labels('200', '/users');
      const detached = child.inc ?? child.observe;
      detached(1);
      detached(1);
      assert.ok(metric.value({ ...GET, status: 200 }));
      assert.throws(() => curried.labels('200'), /^Error: Invalid number of arguments \(1\)/);
      curried.remove('200', '/users');
      assert.equal(metric.value({ ...GET, status: 200 }), undefined);
      record(curried, { status: 200, route: '/users' }, 1);
      curried.remove({ route: '/users', status: 200 });
      assert.deepEqual(await valuesOf(metric), []);
    });

    it(`curry() of a ${name} refuses labels that are unknown or bound, and nothing is recorded`, async () => {
      const metric = made();
      const curried = metric.curry(GET);
      const error = /^Error: Added label "\w+" is not included in initial labelset: \[ 'status' \]/;
      for (const labels of [{ method: 'PUT' }, { statu: 200 }, { status: 200, route: '/' }]) {
        for (const method of ['inc', 'dec', 'set', 'observe', 'remove', 'value', 'curry', 'setToCurrentTime'])
          if (method in curried) assert.throws(() => curried[method](labels, 1), error, method);
        for (const method of ['time', 'trackInProgress'])
          if (method in curried) assert.throws(() => curried[method](labels, assert.fail), error, method);
        if ('startTimer' in curried) assert.throws(() => curried.startTimer()(labels), error);
        assert.throws(() => curried.labels(labels), error);
      }
      assert.throws(() => record(curried, { status: 200 }, 'x'), TypeError);
      assert.throws(() => metric.curry({ path: '/' }), /^Error: Added label "path" is not included/);
      assert.throws(() => metric.curry('GET'), /^TypeError: curry\(\) expected an object of labels: 'GET'/);
      assert.deepEqual(await valuesOf(metric), []);
    });

    it(`curry() of a ${name} stays valid over reset(), remove(), new label names and compaction`, async () => {
      const metric = made({ labelNames: [...NAMES] });
      const curried = metric.curry(GET);
      const count = () => {
        const value = curried.value({ status: 200 });
        return value?.count ?? value;
      };
      const change = {
        reset: () => metric.reset(),
        remove: () => curried.remove({ status: 200 }),
        removeMatching: () => metric.removeMatching({}),
        hashMap: () => (metric.hashMap = {}),
        compaction: () => {
          for (let i = 0; i < 2048; i++) record(metric, { method: 'x', status: i }, 1);
          metric.removeMatching({ method: 'x' });
          for (let i = 0; i < 2048; i++) record(metric, { method: 'y', status: i }, 1);
        },
        labelNames: () => metric.labelNames.push('zone') && record(metric, { zone: 'a' }, 1),
      };
      for (const [what, act] of Object.entries(change)) {
        for (let i = 0; i < 3; i++) record(curried, { status: 200 }, 1);
        const isKept = what === 'compaction' || what === 'labelNames';
        const before = count();
        act();
        for (let i = 0; i < 3; i++) record(curried, { status: 200 }, 1);
        assert.equal(count(), isKept ? before + 3 : 3, what);
      }
    });

    it(`curry() of a ${name} takes the names that a program adds to labelNames, before curry() and after`, () => {
      for (const labelNames of [['method'], []]) {
        const metric = made({ labelNames });
        metric.labelNames.push('status');
        const curried = metric.curry(labelNames.length === 2 ? { method: 'GET' } : {});
        for (let i = 0; i < 3; i++) record(curried, { status: 200 }, 1);
        metric.labelNames.push('zone');
        for (let i = 0; i < 3; i++) record(curried, { status: 200, zone: 'a' }, 1);
        record(curried, { status: 200 }, 1);
        const counts = [{ status: 200 }, { status: 200, zone: 'a' }].map(labels => curried.value(labels));
        if (name !== 'gauge')
          assert.deepEqual(
            counts.map(value => value?.count ?? value),
            [4, 3],
          );
        assert.deepEqual(curried.labelNames, ['status', 'zone']);
      }
    });

    it(`curry() of a ${name} counts each label set beyond maxSeries`, () => {
      const metric = made({ maxSeries: 1 });
      const curried = metric.curry(GET);
      for (const status of [200, 404, 404, 500]) record(curried, { status }, 1);
      assert.equal(metric.overflowCount, 3);
      // Its series has left since, and another one has its place.
      curried.remove({ status: 200 });
      record(metric.curry(GET), { status: 201 }, 1);
      for (let i = 0; i < 3; i++) record(curried, { status: 200 }, 1);
      assert.equal(metric.overflowCount, 6);
    });
  });
}

describe('curry()', () => {
  it('curry() binds a copy: the program may change its object', () => {
    const counter = new Counter({ name: 'm', help: 'h', labelNames: NAMES, registers: [] });
    const labels = { ...GET };
    const curried = counter.curry(labels);
    labels.method = 'PUT';
    curried.inc({ status: 1 });
    assert.equal(counter.value({ ...GET, status: 1 }), 1);
  });

  it('curry() has timers, which record with the labels of start and end', async () => {
    const histogram = new Histogram({ name: 'm', help: 'h', labelNames: NAMES, registers: [] });
    const gauge = new Gauge({ name: 'm', help: 'h', labelNames: NAMES, registers: [] });
    const summary = new Summary({ name: 'm', help: 'h', labelNames: NAMES, registers: [] });
    for (const metric of [histogram, gauge, summary]) {
      const { startTimer } = metric.curry({ method: 'GET' });
      const seconds = startTimer({ route: '/users' })({ status: 200 });
      const value = metric.value({ ...GET, status: 200 });
      assert.equal(value.sum ?? value, seconds);
      if (metric === gauge) continue;
      assert.equal(await metric.curry({ method: 'GET' }).time({ route: '/' }, async () => 5), 5);
      assert.equal(metric.value({ method: 'GET', route: '/' }).count, 1);
    }
    const { trackInProgress, setToCurrentTime, dec, set } = gauge.curry({ method: 'PUT' });
    trackInProgress({ route: '/' }, () => assert.equal(gauge.value({ method: 'PUT', route: '/' }), 1));
    assert.equal(gauge.value({ method: 'PUT', route: '/' }), 0);
    setToCurrentTime({ route: '/now' });
    assert.ok(gauge.value({ method: 'PUT', route: '/now' }) > 1e9);
    set(NaN);
    dec({ route: '/' }, 2);
    assert.deepEqual([gauge.value({ method: 'PUT' }), gauge.value({ method: 'PUT', route: '/' })], [NaN, -2]);
  });

  it('curry() takes exemplars', async () => {
    const registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
    const options = { help: 'h', labelNames: NAMES, registers: [registry], enableExemplars: true };
    const exemplarLabels = { trace_id: 'a' };
    const counter = new Counter({ ...options, name: 'c' }).curry(GET);
    for (let i = 0; i < 3; i++) counter.inc({ labels: { status: 200 }, value: 2, exemplarLabels });
    const histogram = new Histogram({ ...options, name: 'h', buckets: [] }).curry(GET);
    histogram.startTimer({ status: 200 }, exemplarLabels)();
    const page = await registry.metrics();
    assert.match(page, /^c_total\{method="GET",route="\/users",status="200"\} 6 # \{trace_id="a"\} 2/m);
    assert.match(page, /^h_bucket\{.*status="200"\} 1 # \{trace_id="a"\}/m);
    assert.throws(
      () => counter.inc({ labels: { method: 'PUT' }, exemplarLabels }),
      /"method" is not included/,
    );
  });

  it('curry() calls a method that was replaced, with all labels', () => {
    const counter = new Counter({ name: 'm', help: 'h', labelNames: NAMES, registers: [] });
    const curried = counter.curry(GET);
    counter.labels = () => assert.fail('prom-client calls labels() for programs only');
    curried.inc({ status: 200 });
    curried.inc({ status: 200 });
    const calls = [];
    counter.inc = (...args) => calls.push(args);
    curried.inc({ status: 200 }, 2);
    curried.inc({ status: 404 });
    assert.deepEqual(calls, [[{ ...GET, status: 200 }, 2], [{ ...GET, status: 404 }]]);
  });

  it('curry() counts any number of label sets, with labels in any order', () => {
    const counter = new Counter({ name: 'm', help: 'h', labelNames: NAMES, registers: [] });
    const curried = counter.curry({ method: 'GET' });
    const sets = Array.from({ length: 1200 }, (_, i) => ({ route: `/${i % 400}`, status: i % 3 }));
    for (const { route, status } of sets) {
      curried.inc({ route });
      curried.inc({ status, route });
      curried.inc({ route, status }, 2);
    }
    for (const set of sets) assert.equal(counter.value({ method: 'GET', ...set }), 3);
    assert.equal(counter.value({ method: 'GET', route: '/0' }), 3);
    assert.equal(counter.seriesCount, 1600);
  });

  it('property: curried counters count as the metric does, whatever happens between', () => {
    const value = fc.constantFrom('a', 'b', 1, '1', undefined, null, true);
    const labels = fc.record({ x: value, y: value, z: value }, { requiredKeys: [] });
    const bound = fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 });
    const step = fc.record({
      labels,
      bound,
      act: fc.constantFrom('inc', 'inc', 'inc', 'remove', 'reset', 'labels'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const options = { name: 'm', help: 'h', labelNames: ['x', 'y', 'z'], registers: [], maxSeries: 8 };
        const [metric, expected] = [new Counter(options), new Counter(options)];
        /** @type {Map<string, any>} */
        const curried = new Map();
        for (const { labels: all, bound: names, act } of steps) {
          const first = Object.fromEntries(names.filter(n => n in all).map(n => [n, all[n]]));
          const rest = Object.fromEntries(Object.entries(all).filter(([n]) => !(n in first)));
          const key = JSON.stringify(Object.entries(first).map(([n, v]) => [n, typeof v, `${v}`]));
          if (!curried.has(key)) curried.set(key, metric.curry(first));
          if (act === 'reset') for (const each of [metric, expected]) each.reset();
          else if (act === 'labels') (curried.get(key).labels(rest).inc(2), expected.labels(all).inc(2));
          else (curried.get(key)[act](rest), expected[act](all));
        }
        const of = m =>
          new Map(
            Object.values(m.hashMap).map(s => [JSON.stringify(Object.entries(s.labels).sort()), s.value]),
          );
        assert.deepEqual(of(metric), of(expected));
        assert.equal(metric.overflowCount, expected.overflowCount);
      }),
    );
  });
});
