'use strict';

// A family's text is the same whether it is formatted completely or assembled from cached text.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const { CachedText } = require('../../lib/store/cached-text');
const { TEXT } = require('../../lib/exposition/formats');
const { Page } = require('../../lib/exposition/page');
const { renderText } = require('../fixtures/unit-scrape');

const BOUNDS = [0.1, 1, 10];

/** Rows whose numbers a test changes, and their family. */
class Rows {
  cached = new CachedText();
  labels = [];
  numbers = new Float64Array(0);
  order = [];
  help = 'help';
  exemplar = undefined;

  constructor(kind, count) {
    this.kind = kind;
    this.bounds = BOUNDS;
    for (let i = 0; i < count; i++) this.add(i);
  }

  get width() {
    return this.kind === 'histogram' ? this.bounds.length + 2 : 1;
  }

  add(value, labels = `row="${this.labels.length}",name="some text"`) {
    const row = this.labels.length;
    this.labels.push(labels);
    const numbers = new Float64Array(this.labels.length * this.width);
    numbers.set(this.numbers);
    this.numbers = numbers;
    this.order.push(row);
    this.set(row, value);
  }

  set(row, value) {
    this.numbers[row * this.width + (row % this.width)] = value;
  }

  family(cachedText) {
    const { kind, bounds, width, numbers, exemplar } = this;
    return {
      name: kind === 'histogram' ? 'h' : 'c_total',
      help: this.help,
      type: kind === 'histogram' ? 'histogram' : 'counter',
      layout: { kind, marks: kind === 'histogram' ? bounds : [] },
      rows: () => Int32Array.from(this.order),
      pageOf: () => numbers,
      offsetOf: row => row * width,
      labelText: row => this.labels[row],
      exemplarAt: exemplar && (() => exemplar),
      cachedText,
    };
  }

  /** Checks that the page with cached text equals the page that is formatted completely, and returns it. */
  check(openMetrics = false) {
    const [other] = [{ ...this.family(undefined), name: 'other' }];
    const text = renderText([other, this.family(this.cached), other], openMetrics);
    assert.strictEqual(text, renderText([other, this.family(undefined), other], openMetrics));
    return text;
  }

  /** How many rows are formatted for the next page. */
  formatted(openMetrics = false) {
    let count = 0;
    const family = this.family(this.cached);
    const { labelText } = family;
    family.labelText = (row, marked) => {
      if (!marked) count++;
      return labelText(row);
    };
    renderText([family], openMetrics);
    return count;
  }
}

describe('the cached text of a family', () => {
  for (const kind of ['value', 'histogram']) {
    it(`the cached text of a family is formatted again only in rows with a changed number: ${kind}`, () => {
      const rows = new Rows(kind, 1000);
      assert.strictEqual(rows.formatted(), 1000);
      assert.strictEqual(rows.formatted(), 0);
      for (const row of [0, 1, 500, 502, 999]) rows.set(row, 123456789.5);
      assert.strictEqual(rows.formatted(), 5);
      rows.check();
      rows.add(7);
      assert.strictEqual(rows.formatted(), 1);
      rows.check();
    });
  }

  it('the cached text of a family equals formatted text after random changes', () => {
    const value = fc.oneof(fc.nat(), fc.double(), fc.constantFrom(NaN, -0, 0, Infinity, -Infinity, 1e21));
    const position = fc.nat(10_000);
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.tuple(fc.constant('set'), position, value) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('fill'), position, value) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('add'), fc.nat(50), value) },
      fc.tuple(fc.constant('drop'), position, fc.nat(90)),
      fc.tuple(fc.constant('swap'), position, position),
      fc.tuple(fc.constant('addLabelled'), fc.constantFrom('x="y"', 'x="日本"', ''), value),
      fc.tuple(fc.constant('help'), fc.constantFrom('other', 'a\nb', 'ü'), fc.nat()),
      fc.tuple(fc.constant('exemplar'), fc.boolean(), fc.nat()),
      fc.tuple(fc.constant('bound'), fc.integer({ min: 2, max: 9 }), fc.nat()),
      fc.tuple(fc.constant('openMetrics'), fc.boolean(), fc.nat()),
      { weight: 6, arbitrary: fc.tuple(fc.constant('check'), fc.nat(), fc.nat()) },
    );
    const program = fc.tuple(fc.constantFrom('value', 'histogram'), fc.integer({ min: 60, max: 300 }));
    fc.assert(
      fc.property(program, fc.array(step, { minLength: 5, maxLength: 60 }), ([kind, count], steps) => {
        const rows = new Rows(kind, count);
        let openMetrics = false;
        const steps1 = {
          set: (at, number) => rows.set(at % rows.labels.length, number),
          fill(at, number) {
            for (let row = at % rows.labels.length; row < rows.labels.length; row++) rows.set(row, number);
          },
          add(more, number) {
            for (let i = 0; i < more; i++) rows.add(number);
          },
          drop: (at, many) => rows.order.splice(at % Math.max(rows.order.length, 1), many),
          swap(at, to) {
            const { order } = rows;
            if (order.length === 0) return;
            [order[at % order.length], order[to % order.length]] = [
              order[to % order.length],
              order[at % order.length],
            ];
          },
          addLabelled: (labels, number) => rows.add(number, labels),
          help: text => (rows.help = text),
          exemplar: has =>
            (rows.exemplar = has ? { labelSet: { id: 'é' }, value: 1, timestamp: 2 } : undefined),
          openMetrics: is => (openMetrics = is),
          bound: bound => (rows.bounds = [0.1, bound, 10]),
          check: () => rows.check(openMetrics),
        };
        for (const [name, one, two] of steps) steps1[name](one, two);
        rows.check(openMetrics);
        rows.check(openMetrics);
      }),
      { numRuns: 80 },
    );
  });

  it('the cached text of a family is not used after a page that was not completed', () => {
    const rows = new Rows('value', 20_000);
    rows.check();
    for (let row = 0; row < 20_000; row += 2) rows.set(row, 5e-324);
    const family = rows.family(rows.cached);
    assert.ok(rows.cached.prepare(family, TEXT));
    const steps = rows.cached.write(family, TEXT, new Page(1024));
    steps.next();
    steps.return();
    rows.check();
    rows.check();
  });
});
