'use strict';

// The change detector decides whether a checkpoint is written: it notices everything that a scraper could
// see.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const fc = require('../../fixtures/seeded-fast-check.js');

const client = require('../../..');
const { ChangeDetector } = require('../../../lib/cluster/worker/change-detector');

describe('the change detector of a worker', () => {
  /** What a program may do between two checkpoints. Some of it changes nothing. */
  const LABELS = fc.record({ a: fc.constantFrom('x', 'y', 'z'), b: fc.constantFrom('1', '2') });
  const NUMBER = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.double({ min: 0, max: 1e300, noNaN: true }));
  const TEXT = fc.constantFrom('1', '2', '', '\n', '=', 'a=1', '1\nb=2', '2\na=1');
  const OPERATIONS = fc.oneof(
    fc.record({ what: fc.constant('inc'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('set'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('observe'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('summarize'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('exemplar'), labels: LABELS, value: NUMBER, trace: TEXT }),
    fc.record({ what: fc.constant('remove'), labels: LABELS, metric: fc.constantFrom('c', 'g', 'h', 's') }),
    fc.record({ what: fc.constant('reset'), metric: fc.constantFrom('c', 'g', 'h', 's') }),
    fc.record({
      what: fc.constant('defaults'),
      defaults: fc.dictionary(fc.constantFrom('a', 'b', 'd'), TEXT),
    }),
    fc.record({ what: fc.constant('renew'), metric: fc.constantFrom('c', 'g', 'h', 's') }),
  );

  const MAKE = {
    c: options => new client.Counter({ ...options, name: 'c_total', enableExemplars: true }),
    g: options => new client.Gauge({ ...options, name: 'g' }),
    h: options =>
      new client.Histogram({ ...options, name: 'h', buckets: [1, 2, 1e200], enableExemplars: true }),
    s: options => new client.Summary({ ...options, name: 's', percentiles: [0.1, 0.9] }),
  };

  class Program {
    registry = new client.Registry(client.openMetricsContentType);
    #metrics = {};

    constructor() {
      for (const name of Object.keys(MAKE)) this.#make(name);
    }

    #make(name) {
      const labelNames = ['a', 'b'];
      this.#metrics[name] = MAKE[name]({ help: 'h', labelNames, registers: [this.registry] });
    }

    perform({ what, labels, value, metric, trace, defaults }) {
      const { c, g, h, s } = this.#metrics;
      switch (what) {
        case 'inc':
          return c.inc(labels, value);
        case 'set':
          return g.set(labels, value);
        case 'observe':
          return h.observe(labels, value);
        case 'summarize':
          return s.observe(labels, value);
        case 'exemplar':
          h.observe({ labels, value, exemplarLabels: { trace } });
          return c.inc({ labels, value, exemplarLabels: { trace } });
        case 'remove':
          return this.#metrics[metric].remove(labels);
        case 'reset':
          return this.#metrics[metric].reset();
        case 'defaults':
          return this.registry.setDefaultLabels(defaults);
        default:
          this.registry.removeSingleMetric(this.#metrics[metric].name);
          return this.#make(metric);
      }
    }

    /** All that a scraper could see, without the time of exemplars. */
    async text() {
      return (await this.registry.metrics()).replace(/(# \{.*\} \S+) \S+$/gm, '$1');
    }
  }

  it('the change detector notices whatever a scraper could see, and nothing while nothing is recorded', async () => {
    const turns = fc.array(fc.array(OPERATIONS, { minLength: 1, maxLength: 6 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(turns, async turns => {
        const program = new Program();
        const detector = new ChangeDetector();
        assert.equal(await detector.hasChanged([program.registry]), true);
        let before = await program.text();
        for (const operations of turns) {
          for (const operation of operations) program.perform(operation);
          const now = await program.text();
          const noticed = await detector.hasChanged([program.registry]);
          if (now !== before) assert.ok(noticed, `${before}\nbecame\n${now}`);
          assert.equal(await detector.hasChanged([program.registry]), false, 'nothing was done');
          before = now;
        }
      }),
      { numRuns: 60 },
    );
  });

  it('the change detector distinguishes small numbers, round numbers, and the same numbers in another order', async () => {
    const registry = new client.Registry();
    const gauge = new client.Gauge({ name: 'g', help: 'h', labelNames: ['place'], registers: [registry] });
    const detector = new ChangeDetector();
    const values = [0, 1, 2, 3, 4, 8, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** -1074, -1, -0, Infinity];
    for (const first of values) {
      for (const second of values) {
        for (const third of values) {
          gauge.set({ place: 0 }, first);
          gauge.set({ place: 1 }, second);
          gauge.set({ place: 2 }, third);
          assert.ok(await detector.hasChanged([registry]), `${[first, second, third]}`);
        }
      }
    }
  });

  it('the change detector distinguishes summaries with the same sum and other quantiles', async () => {
    const registry = new client.Registry();
    const summary = new client.Summary({ name: 's', help: 'h', registers: [registry], percentiles: [0.9] });
    const detector = new ChangeDetector();
    for (const value of [1, 5]) summary.observe(value);
    await detector.hasChanged([registry]);
    summary.reset();
    for (const value of [3, 3]) summary.observe(value);
    assert.equal(await detector.hasChanged([registry]), true);
  });

  it('the change detector works in slices, between which others have the event loop', async () => {
    const registry = new client.Registry();
    const options = { help: 'h', labelNames: ['number'], registers: [registry] };
    for (let metric = 0; metric < 10; metric++) {
      const counter = new client.Counter({ ...options, name: `c${metric}_total` });
      for (let number = 0; number < 20_000; number++) counter.inc({ number });
    }
    let turns = 0;
    let looking = true;
    const turn = () => looking && (turns++, setImmediate(turn));
    setImmediate(turn);
    await new ChangeDetector().hasChanged([registry]);
    looking = false;
    assert.ok(turns > 1, `${turns} turns`);
  });
});
