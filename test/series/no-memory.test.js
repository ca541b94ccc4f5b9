'use strict';

// An allocation that fails costs the recording that needed it, and nothing else.

const assert = require('node:assert/strict');
const { describe, it, mock } = require('node:test');
const { Counter, Histogram, Registry, Summary } = require('../..');
const { withFailingAllocation } = require('../fixtures/failing-allocations');
const { writtenSamples } = require('../fixtures/unit-scrape');

// Rows begin to count in different seconds, which takes memory.
mock.timers.enable({ apis: ['Date'] });

const TYPES = {
  Counter: { Type: Counter, verb: 'inc' },
  Histogram: { Type: Histogram, verb: 'observe', config: { buckets: [1] } },
  Summary: { Type: Summary, verb: 'observe', config: { percentiles: [0.5] } },
};

for (const [name, { Type, verb, config }] of Object.entries(TYPES)) {
  const make = () => {
    const registry = new Registry();
    const labelNames = ['kind', 'status', 'id'];
    const metric = new Type({ name: 'm', help: 'h', labelNames, registers: [registry], ...config });
    const record = labels => {
      mock.timers.tick(300);
      metric[verb](labels, 2);
    };
    return { registry, metric, record };
  };

  /**
   * @param {((made: ReturnType<typeof make>) => void)[]} calls are made in this order; for each allocation of
   *   theirs once, that one fails
   * @returns {Promise<number>} how many calls have failed
   */
  async function checkEachFailure(calls) {
    let failures = 0;
    for (let failing = 0, hasFailed = true; hasFailed; failing++) {
      const made = make();
      const expected = make();
      const failed = new Map();
      ({ hasFailed } = withFailingAllocation(failing, () => {
        for (const call of calls) {
          try {
            call(made);
          } catch (error) {
            failed.set(call, error);
          }
        }
      }));
      if (!hasFailed) break;
      for (const error of failed.values()) assert.equal(error.message, 'Array buffer allocation failed');
      assert.ok(failed.size <= 1);
      failures += failed.size;
      for (const call of calls) if (!failed.has(call)) call(expected);
      const what = `after allocation ${failing}`;
      assert.deepEqual(await writtenSamples(made.registry), await writtenSamples(expected.registry), what);
      for (const call of calls) [made, expected].forEach(call);
      assert.deepEqual(await writtenSamples(made.registry), await writtenSamples(expected.registry), what);
      await made.registry.getMetricsAsJSON();
    }
    return failures;
  }

  const labelsOf = i =>
    i % 3 === 0 ? { kind: `kind ${i % 7}`, id: i } : { id: i, kind: 'x', status: i % 5 };

  describe(`a ${name} for which there is no memory`, () => {
    it(`counts everything else: new series of a ${name}, removed ones and known ones`, async () => {
      const calls = [];
      for (let i = 0; i < 150; i++) {
        calls.push(({ record }) => record(labelsOf(i)));
        calls.push(({ record }) => record(labelsOf(i >> 1)));
        if (i % 10 === 9) calls.push(({ metric }) => metric.remove(labelsOf(i - 5)));
      }
      assert.ok((await checkEachFailure(calls)) > 10);
    });

    it(`counts everything else while the table of a ${name} is compacted`, async () => {
      const calls = [];
      for (let i = 0; i < 2040; i++) calls.push(({ record }) => record({ id: i, kind: 'old' }));
      calls.push(({ metric }) => metric.removeMatching({ kind: 'old' }));
      for (let i = 0; i < 100; i++) {
        calls.push(({ record }) => record({ id: i, kind: 'new', status: 1 }));
        if (i % 10 === 9) calls.push(({ metric }) => metric.remove({ id: i - 5, kind: 'new', status: 1 }));
        calls.push(({ record }) => record({ id: i >> 1, kind: 'new', status: 1 }));
      }
      assert.ok((await checkEachFailure(calls)) > 10);
    });
  });
}
