'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { subject, reference } = require('./fixtures/property-implementations');
const { inStubbedWorld, seededRandom } = require('./fixtures/property-stubbed-world');
const { number } = require('./fixtures/property-programs');

const QUANTILES = [0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
const START = 1_700_000_000_000;

function summaryOf(client, options = {}) {
  const registers = [new client.Registry()];
  return new client.Summary({ name: 's', help: 's', registers, percentiles: QUANTILES, ...options });
}

/** Quantile -> value, of a summary without labels. */
async function quantilesOf(summary) {
  const samples = (await summary.get()).values.filter(sample => 'quantile' in sample.labels);
  return new Map(samples.map(sample => [sample.labels.quantile, sample.value]));
}

async function sumAndCountOf(summary) {
  const { values } = await summary.get();
  return ['s_sum', 's_count'].map(name => values.find(sample => sample.metricName === name)?.value);
}

test('property: quantiles of up to 100 observations equal those of prom-client, to the last digit', async () => {
  const observations = fc.array(number, { maxLength: 100, size: 'max' });
  const readAfter = fc.array(fc.nat({ max: 99 }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(fc.nat(), observations, readAfter, async (seed, values, readings) => {
      const read = client =>
        inStubbedWorld({ seed }, async () => {
          const summary = summaryOf(client, { compressCount: 7 });
          const results = [];
          for (const [index, value] of values.entries()) {
            summary.observe(value);
            if (readings.includes(index)) results.push(await summary.get());
          }
          return [...results, await summary.get()].map(family => JSON.stringify(family.values));
        });
      assert.deepStrictEqual(await read(subject), await read(reference));
    }),
    { numRuns: 50, includeErrorInReport: true },
  );
});

test("property: observations of a few distinct values give prom-client's quantiles, to the last digit", async () => {
  for (const values of [[42], [0, 1], [-3, 0.5, 0.75, 10, 1e6]]) {
    const read = async client => {
      const random = seededRandom(7);
      const summary = summaryOf(client);
      for (let i = 0; i < 5_000; i++) summary.observe(values[Math.floor(random() * values.length)]);
      return quantilesOf(summary);
    };
    assert.deepStrictEqual(await read(subject), await read(reference));
  }
});

/**
 * What a window of `ageBuckets` slots has to show: a ring of lists, every observation in all of them, of
 * which the current one is emptied and left every maxAgeSeconds / ageBuckets. prom-client is not asked
 * itself, since its slots begin as one digest (prom-client defect 6); a prom-client summary without a window
 * is asked about the current list.
 */
class WindowModel {
  constructor({ maxAgeSeconds, ageBuckets }, now) {
    this.slots = Array.from({ length: ageBuckets }, () => []);
    this.current = 0;
    this.step = (maxAgeSeconds * 1000) / ageBuckets;
    this.lastRotation = now;
  }

  rotate(now) {
    while (now - this.lastRotation > this.step) {
      this.slots[this.current] = [];
      this.current = (this.current + 1) % this.slots.length;
      this.lastRotation += this.step;
    }
  }

  observe(value, now) {
    this.rotate(now);
    for (const slot of this.slots) slot.push(value);
  }

  visible(now) {
    this.rotate(now);
    return this.slots[this.current];
  }
}

async function quantilesOfPromClient(observations) {
  const summary = summaryOf(reference);
  observations.forEach(value => summary.observe(value));
  return quantilesOf(summary);
}

const windowOptions = fc.record({
  maxAgeSeconds: fc.constantFrom(1, 10, 600),
  ageBuckets: fc.constantFrom(1, 2, 4, 5), // divide into whole milliseconds
  compressCount: fc.constantFrom(1, 3, 1000),
});

// Shares of maxAgeSeconds, so that a few steps cross slot boundaries; whole milliseconds, as Date.now() has
// them.
const windowOperation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('observe'), value: fc.integer({ min: -50, max: 50 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('wait'), share: fc.constantFrom(0.05, 0.2, 0.25, 0.5, 1, 2.5) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('read') }) },
);

const skip = subject === reference && 'prom-client defect 6';
test('property: a window has the observations of its last maxAgeSeconds, each once', { skip }, async () => {
  const operations = fc.array(windowOperation, { maxLength: 60, size: 'max' });
  await fc.assert(
    fc.asyncProperty(windowOptions, operations, (options, steps) =>
      inStubbedWorld({ start: START }, async clock => {
        const summary = summaryOf(subject, options);
        const model = new WindowModel(options, clock.wallClock());
        const observed = [];
        for (const step of [...steps, { op: 'read' }]) {
          if (step.op === 'wait') clock.advance(Math.floor(step.share * options.maxAgeSeconds * 1000));
          if (step.op === 'observe') {
            summary.observe(step.value);
            model.observe(step.value, clock.wallClock());
            observed.push(step.value);
          }
          if (step.op === 'read') {
            const visible = model.visible(clock.wallClock());
            assert.deepStrictEqual(await quantilesOf(summary), await quantilesOfPromClient(visible));
            const sum = observed.reduce((total, value) => total + value, 0);
            assert.deepStrictEqual(await sumAndCountOf(summary), [sum, observed.length]);
          }
        }
      }),
    ),
    { numRuns: 60, includeErrorInReport: true },
  );
});

for (const [library, client] of Object.entries({ 'this package': subject, 'prom-client': reference })) {
  test(`pruneAgedBuckets drops exactly the label sets without observations in the window (${library})`, () =>
    inStubbedWorld({ start: START }, async clock => {
      const labelled = { labelNames: ['route'], percentiles: [0.5], pruneAgedBuckets: true };
      const summary = summaryOf(client, { ...labelled, maxAgeSeconds: 60, ageBuckets: 3 });
      const routes = async () => (await summary.get()).values.map(sample => sample.labels.route);

      summary.observe({ route: '/old' }, 1);
      clock.advance(40_000);
      summary.observe({ route: '/new' }, 2);
      clock.advance(20_000);
      assert.deepStrictEqual(await routes(), ['/old', '/old', '/old', '/new', '/new', '/new']);

      clock.advance(1);
      assert.deepStrictEqual(await routes(), ['/new', '/new', '/new']);

      summary.observe({ route: '/old' }, 5);
      const { values } = await summary.get();
      const shown = values.filter(sample => sample.labels.route === '/old').map(sample => sample.value);
      assert.deepStrictEqual(shown, [5, 5, 1], 'a label set that comes back starts anew');
    }));
}
