'use strict';

// `maxIdleSeconds`: series that nobody uses any more leave. The clock is that of test/fixtures/idle-clock.js.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { Counter, Registry } = require('../..');
const { METRIC_TYPES, METRIC_CLASSES } = require('../fixtures/metric-types');
const { MovedClock } = require('../fixtures/idle-clock');

const IDLE = 600;

/** The latest that a series may leave: a tick, and what is left of one. */
const LATEST = IDLE * (1 + 2 / 16);

/** A metric named m, of its own registry. */
function make(Type, config = {}, registry = new Registry()) {
  const options = { name: 'm', help: 'h', labelNames: ['a'], maxIdleSeconds: IDLE, registers: [registry] };
  return new Type({ ...options, ...config });
}

/** @returns {string[]} the values of the label a */
const seriesOf = metric => Object.values(metric.hashMap).map(({ labels }) => labels.a);

for (const type of METRIC_TYPES) {
  describe(`maxIdleSeconds of a ${type.name}`, () => {
    const makeOne = (options = {}) =>
      make(function Type(config) {
        return type.make(config);
      }, options);

    it('a series expires after that time, not before, and begins at zero when it is used again', async t => {
      const clock = new MovedClock(t);
      const metric = makeOne();
      type.record(metric, { a: 'x' }, 3);
      await clock.move(IDLE - 1);
      assert.deepEqual(seriesOf(metric), ['x']);
      type.record(metric, { a: 'y' }, 3);
      await clock.move(LATEST - IDLE + 1);
      assert.deepEqual(seriesOf(metric), ['y']);
      assert.deepEqual([metric.expiredCount, metric.seriesCount], [1, 1]);
      type.record(metric, { a: 'x' }, 4);
      const fresh = makeOne();
      type.record(fresh, { a: 'x' }, 4);
      assert.deepEqual(metric.value({ a: 'x' }), fresh.value({ a: 'x' }));
    });
  });
}

describe('maxIdleSeconds as an option', () => {
  it('anything but a positive finite number is refused, and nothing is registered', () => {
    for (const Type of METRIC_CLASSES) {
      for (const maxIdleSeconds of [0, -1, NaN, Infinity, '600', true, false, '', 5n, {}, [600]]) {
        const registry = new Registry();
        const expected = {
          name: 'RangeError',
          code: 'PROM_CLIENT_INVALID_OPTION',
          message: /^maxIdleSeconds must be a positive finite number: /,
        };
        assert.throws(() => make(Type, { maxIdleSeconds }, registry), expected);
        assert.deepEqual(registry.getMetricsAsArray(), []);
        assert.throws(() => registry.setMaxIdleSeconds(/** @type {any} */ (maxIdleSeconds)), expected);
      }
    }
  });

  it('the default of a registry is that of metrics which are created later, with that registry first', async t => {
    const clock = new MovedClock(t);
    const [registry, other] = [new Registry(), new Registry()];
    const none = { maxIdleSeconds: undefined };
    const before = make(Counter, { ...none, name: 'before' }, registry);
    registry.setMaxIdleSeconds(IDLE);
    const after = make(Counter, { ...none, name: 'after' }, registry);
    const own = make(Counter, { name: 'own', maxIdleSeconds: 4 * IDLE }, registry);
    const second = make(Counter, { ...none, name: 'second', registers: [other, registry] });
    const metrics = [before, after, own, second];
    for (const metric of metrics) metric.inc({ a: 'x' });
    await clock.move(LATEST);
    assert.deepEqual(
      metrics.map(({ seriesCount }) => seriesCount),
      [1, 0, 1, 1],
    );
    await clock.move(4 * LATEST);
    assert.deepEqual(
      metrics.map(({ seriesCount }) => seriesCount),
      [1, 0, 0, 1],
    );
  });
});
