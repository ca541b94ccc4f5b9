'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { Counter, Registry } = require('../../index');
const { ClusterFamily } = require('../../lib/store/cluster-family');
const { TableSource } = require('../../lib/store/table-source');
const { viewOf } = require('../../lib/registry/metric-view');
const { runThrough } = require('../../lib/event-loop/slices');
const { renderText, samplesOf, seriesKey } = require('../fixtures/unit-scrape');

let scrape = 0;

const RULES = ['sum', 'min', 'max', 'average', 'first'];

/** @param {string[]} labelNames */
function counterWith(labelNames = ['a', 'b']) {
  const counter = new Counter({ name: 'c', help: 'h', labelNames, registers: [new Registry()] });
  return { counter, view: /** @type {any} */ (viewOf(counter)) };
}

/**
 * @param {ClusterFamily} family
 * @param {TableSource[]} sources
 */
function merged(family, sources, rule = 'sum') {
  family.begin(++scrape);
  for (const source of sources) family.addSource(source.read());
  runThrough(family.merge(rule, 0));
  return samplesOf(renderText([family.view()], false));
}

/** @param {any} view of its table @returns {ClusterFamily} */
function familyOf(view) {
  return new ClusterFamily(new TableSource(view, 1).read().definition, assert.fail);
}

describe('a table as a source', () => {
  for (const rule of RULES)
    it(`is merged by the rule ${rule}, whatever pages its rows are in, with and without removed ones`, () => {
      const { counter, view } = counterWith();
      const expected = new Map();
      // In several pages.
      for (let i = 0; i < 40_000; i++) {
        const labels = { a: `v${i % 300}`, b: `w${Math.floor(i / 300)}` };
        counter.inc(labels, i + 1);
        expected.set(seriesKey('c', labels), rule === 'sum' ? 2 * i + 2 : i + 1);
      }
      const family = familyOf(view);
      const sources = [new TableSource(view, 1), new TableSource(view, 2)];
      assert.ok(view.table.pages.length > 2);
      assert.deepEqual(merged(family, sources, rule), expected);
      for (const i of [0, 5, 20_000, 39_999]) {
        const labels = { a: `v${i % 300}`, b: `w${Math.floor(i / 300)}` };
        counter.remove(labels);
        expected.delete(seriesKey('c', labels));
      }
      assert.deepEqual(merged(family, sources, rule), expected);
    });

  it('has the label sets of its rows after they got other numbers, and default labels', () => {
    const { counter, view } = counterWith();
    for (let i = 0; i < 3000; i++) counter.inc({ a: `v${i}` });
    const family = familyOf(view);
    const source = new TableSource(view, 1, [
      ['b', 'default'],
      ['zone', 'z'],
    ]);
    assert.equal(merged(family, [source]).size, 3000);
    for (let i = 0; i < 2990; i++) counter.remove({ a: `v${i}` });
    const before = source.read();
    runThrough(view.table.compactionSteps());
    counter.inc({ b: 'own', a: 'new' }, 5);
    const expected = Array.from({ length: 10 }, (_, i) => [
      seriesKey('c', { a: `v${2990 + i}`, b: 'default', zone: 'z' }),
      1,
    ]);
    const added = /** @type {const} */ ([seriesKey('c', { a: 'new', b: 'own', zone: 'z' }), 5]);
    assert.deepEqual(merged(family, [source]), new Map([...expected, added]));
    // What was read before is as it was.
    family.begin(++scrape);
    family.addSource(before);
    runThrough(family.merge('sum', 0));
    assert.deepEqual(samplesOf(renderText([family.view()], false)), new Map(/** @type {any} */ (expected)));
  });

  it('may have no labels, or no rows', () => {
    const { counter, view } = counterWith([]);
    const empty = counterWith().view;
    counter.inc(3);
    assert.deepEqual(
      merged(
        familyOf(view),
        [view, empty].map((each, i) => new TableSource(each, i)),
      ),
      new Map([[seriesKey('c'), 3]]),
    );
  });
});
