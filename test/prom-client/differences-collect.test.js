'use strict';

// prom-client defect 11: a collect function may run several times at once, and a thenable is not awaited.

const { test } = require('node:test');
const assert = require('node:assert');
const { Gauge, Registry } = require('../..');

function gaugeWith(collect) {
  const registry = new Registry();
  return { registry, gauge: new Gauge({ name: 'g', help: 'g', registers: [registry], collect }) };
}

test('collect: any returned thenable is awaited', async () => {
  const { registry, gauge } = gaugeWith(function () {
    return {
      then: resolve =>
        setImmediate(() => {
          this.set(5);
          resolve();
        }),
    };
  });
  assert.match(await registry.metrics(), /^g 5$/m);
  gauge.set(0);
  assert.strictEqual((await gauge.get()).values[0].value, 5);
  gauge.set(0);
  assert.match(await registry.getSingleMetricAsString('g'), /^g 5$/m);
});

test('collect: concurrent scrapes each run it', async () => {
  let runs = 0;
  const { registry } = gaugeWith(async function () {
    this.set(++runs);
    await null;
  });
  await Promise.all([registry.metrics(), registry.metrics(), registry.getMetricsAsJSON()]);
  assert.strictEqual(runs, 3);
});

// prom-client defect 11: a metric that is read before the hook that feeds it has run is one scrape late
for (const order of ['before', 'after']) {
  test(`collect: a metric registered ${order} the one whose hook updates it has the number of the same scrape`, async () => {
    const registry = new Registry();
    const follower = new Gauge({ name: 'follower', help: 'f', registers: [] });
    let scrapes = 0;
    if (order === 'before') registry.registerMetric(follower);
    const collect = () => follower.set(++scrapes);
    new Gauge({ name: 'leader', help: 'l', registers: [registry], collect });
    if (order === 'after') registry.registerMetric(follower);

    assert.match(await registry.metrics(), /^follower 1$/m);
    assert.match(await registry.metrics(), /^follower 2$/m);
  });
}
