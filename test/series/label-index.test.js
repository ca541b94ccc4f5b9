'use strict';

const { describe, it, test } = require('node:test');
const assert = require('node:assert');
const { createHash } = require('node:crypto');
const fc = require('../fixtures/seeded-fast-check');
const { LabelIndex, UNKNOWN_LABEL, NOT_PLAIN, plainLabels } = require('../../lib/series/label-index');
const { LabelDictionary, MISSING } = require('../../lib/series/label-dictionary');

/** The row of a label set, as SeriesTable finds it; -1 if a label is not one of the names. */
function rowOf(index, labels) {
  const row = index.find(labels);
  if (row === UNKNOWN_LABEL) return -1;
  if (row === NOT_PLAIN) return rowOf(index, plainLabels(labels));
  return row === -1 ? index.add(labels) : row;
}

/** What makes two label sets one series: the same text for each label that is there. */
function identityOf(names, labels) {
  return JSON.stringify(names.map(name => (labels[name] === undefined ? null : [String(labels[name])])));
}

/** A cheap generator of numbers below a limit that is the same in each run. */
function numbersBelow(seed) {
  let state = seed;
  return limit => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

test('60,000 label sets keep their rows while the table moves, looked up in between', () => {
  const index = new LabelIndex(['method', 'path', 'status']);
  const draw = numbersBelow(7);
  const setAt = i => ({ method: `m${i % 7}`, path: `/p/${i % 20011}`, status: 200 + (i % 41) });
  for (let i = 0; i < 60_000; i++) {
    assert.strictEqual(rowOf(index, setAt(i)), i);
    const old = draw(i + 1);
    if (index.find(setAt(old)) !== old) assert.fail(`row ${old} is lost after ${i + 1} rows`);
    const next = draw(60_000 - i) + i + 1;
    if (index.find(setAt(next)) !== -1) assert.fail(`row ${next} is there after ${i + 1} rows`);
  }
  assert.strictEqual(index.rowCount, 60_000);
});

test('a set with an unknown label is refused and leaves nothing behind', () => {
  const index = new LabelIndex(['a', 'b']);
  rowOf(index, { a: '1', b: '2' });
  for (const labels of [
    { a: 'new', c: 'x' },
    { c: 'x', a: 'new' },
    { a: '1', b: '2', c: undefined },
    { a: 'new', b: 'new', toString: 'x' },
    JSON.parse('{"a": "new", "__proto__": "x"}'),
  ]) {
    assert.strictEqual(rowOf(index, labels), -1);
    assert.ok(index.find(labels) < 0);
  }
  assert.strictEqual(index.rowCount, 1);
  const shown = index.dictionaries.map(dictionary => dictionary.values.slice(1));
  assert.deepStrictEqual(shown, [['1'], ['2']]);
});

test('labels are found under odd names, inherited, and where a name is given twice', () => {
  const odd = new LabelIndex(['__proto__', 'constructor']);
  const labels = JSON.parse('{"__proto__": "p", "constructor": "c"}');
  assert.strictEqual(rowOf(odd, labels), 0);
  assert.strictEqual(odd.find({ constructor: 'c' }), -1);
  const inherited = new LabelIndex(['a', 'b']);
  const row = rowOf(inherited, { a: '1', b: '2' });
  assert.strictEqual(inherited.find(Object.assign(Object.create({ a: '1' }), { b: '2' })), row);
  const twice = new LabelIndex(['a', 'a', 'b']);
  assert.strictEqual(rowOf(twice, { a: '1', b: '2' }), rowOf(twice, { b: '2', a: '1' }));
  assert.notStrictEqual(rowOf(twice, { a: '1' }), rowOf(twice, { a: '2' }));
});

test('random label sets are one row if and only if their texts agree', () => {
  const names = ['a', 'b', 'c'];
  const value = fc.oneof(
    fc.constantFrom(undefined, '', 'undefined', null, 'null', 0, '0', -0, 1, '1', true, 'true', 'a,b:c'),
    fc.constantFrom(NaN, 'NaN', 12n, '12', 1e21, '1e+21', [1, 2], '1,2', { toString: () => '12' }),
    fc.constantFrom(',', ':', 'a,b:', 'a,', ',b', '"', '\\', '\n', '\0', '{}'),
    fc.string({ maxLength: 3 }),
    fc.integer({ min: -2, max: 300 }),
  );
  const labelSet = fc
    .tuple(fc.shuffledSubarray(names), value, value, value)
    .map(([keys, ...values]) => Object.fromEntries(keys.map((key, i) => [key, values[i]])));
  fc.assert(
    fc.property(fc.array(fc.tuple(labelSet, fc.boolean()), { maxLength: 200 }), operations => {
      const index = new LabelIndex(names);
      const model = new Map();
      for (const [labels, adds] of operations) {
        const identity = identityOf(names, labels);
        if (adds && !model.has(identity)) model.set(identity, model.size);
        const row = adds ? rowOf(index, labels) : index.find(plainLabels(labels));
        assert.strictEqual(row, model.get(identity) ?? -1);
      }
      assert.strictEqual(index.rowCount, model.size);
    }),
    { numRuns: 200 },
  );
});

test('30,000 numbers chosen to collide in a hash table cost no more than others', () => {
  // V8 hashes a number from its bits without a seed, so numbers that collide in one process do so in every
  // one. A Map keyed by the 30,000 would compare each with all before it. The dictionary must not use numbers
  // as keys.
  const seen = [];
  const { get, set } = Map.prototype;
  try {
    Map.prototype.get = function (key) {
      seen.push(typeof key);
      return get.call(this, key);
    };
    Map.prototype.set = function (key, value) {
      seen.push(typeof key);
      return set.call(this, key, value);
    };
    const index = new LabelIndex(['a']);
    for (let i = 0; i < 30_000; i++) rowOf(index, { a: i * 2 ** 20 + 0.5 });
    for (let i = 0; i < 30_000; i++) index.find({ a: i * 2 ** 20 + 0.5 });
  } finally {
    Map.prototype.get = get;
    Map.prototype.set = set;
  }
  assert.ok(seen.length > 30_000);
  assert.ok(!seen.includes('number'));
});

test('numbers that share a slot of the cache keep their own ids, beyond what the cache can hold', () => {
  const index = new LabelIndex(['a']);
  for (let i = 0; i < 70_000; i++) assert.strictEqual(rowOf(index, { a: i * 4096 }), i);
  // The cache is there after some look-ups.
  for (let round = 0; round < 100; round++) {
    for (const i of [0, 1, 65_534, 65_535, 65_536, 69_999]) {
      assert.strictEqual(index.find({ a: i * 4096 }), i);
      assert.strictEqual(index.find({ a: String(i * 4096) }), i);
      assert.strictEqual(index.findValues([i * 4096]), i);
    }
  }
  for (const a of [0.5, NaN, Infinity, -0]) rowOf(index, { a });
  assert.strictEqual(index.find({ a: -0 }), 0);
  assert.strictEqual(index.find({ a: 'NaN' }), index.find({ a: NaN }));
  assert.notStrictEqual(index.find({ a: 0.5 }), 0);
});

test('a label gets a cache when it is in use, of a limited size', () => {
  const dictionary = new LabelDictionary();
  // More places in which two texts differ than are read, so that some of them share a slot in every cache.
  const texts = Array.from({ length: 9 }, (_, i) => `${'-'.repeat(i)}x${'-'.repeat(8 - i)}`).concat('');
  const ids = texts.map(text => dictionary.add(text));
  for (const text of texts) dictionary.find(text);
  assert.ok(dictionary.slots.length < 32, 'a label that is hardly used has a cache');
  for (let i = 0; i < 20_000; i++) {
    const n = i % texts.length;
    assert.strictEqual(dictionary.find(texts[n]), ids[n]);
    assert.strictEqual(dictionary.find(`${texts[n]}new`), MISSING);
  }
  assert.ok(dictionary.slots.length >= 32);
  assert.ok(dictionary.slots.length <= texts.length * 32, `${dictionary.slots.length} slots`);
});

describe('the cache of a label distinguishes texts by', () => {
  for (const [where, textOf] of [
    ['their end', i => `/api/v1/resources/${i}`],
    ['their start', i => `${i}.backend.example.com`],
    ['four digits within', i => `/api/users/${1000 + i * 37}/orders`],
    ['one character far from both ends', i => `${'a'.repeat(100)}${i}${'b'.repeat(100)}`],
    ['any of their characters', i => createHash('sha256').update(`${i}`).digest('hex')],
  ]) {
    it(where, t => {
      const dictionary = new LabelDictionary();
      const texts = Array.from({ length: 100 }, (_, i) => textOf(i));
      const ids = texts.map(text => dictionary.add(text));
      // The multiplier of the cache.
      const below = numbersBelow(1);
      t.mock.method(Math, 'random', () => below(2 ** 32) / 2 ** 32);
      const round = () => texts.map(text => dictionary.find(text));
      for (let i = 0; i < 200; i++) round();
      const get = t.mock.method(Map.prototype, 'get');
      for (let i = 0; i < 60; i++) round();
      const lookUps = get.mock.callCount() / 60;
      get.mock.restore();
      assert.deepStrictEqual(round(), ids);
      assert.ok(lookUps <= 30, `${lookUps} of 100 texts are not in the cache`);
    });
  }
});

describe('a label set that is refused', () => {
  for (const [what, value] of [
    ['a symbol', Symbol('s')],
    ['an object without a prototype', Object.create(null)],
    ['an object without a text', { toString: null, valueOf: null }],
  ]) {
    it(`because a value is ${what} leaves nothing to the next label set`, () => {
      const index = new LabelIndex(['a', 'b']);
      const known = rowOf(index, { a: 'known', b: 'one' });
      assert.throws(() => rowOf(index, { a: 'stale', b: value }), TypeError);
      const row = rowOf(index, { a: 'known', b: 'fresh' });
      assert.strictEqual(index.idAt(row, 0), index.idAt(known, 0));
      assert.deepStrictEqual(index.dictionaries[0].values.slice(1), ['known']);
      assert.strictEqual(index.find({ a: 'stale', b: 'fresh' }), -1);
    });
  }
});

it('a value whose text changes from call to call has one id for each text', () => {
  const index = new LabelIndex(['a']);
  let calls = 0;
  const rows = Array.from({ length: 4 }, () => rowOf(index, { a: { toString: () => `t${calls++ % 2}` } }));
  assert.deepStrictEqual(new Set(index.dictionaries[0].values).size, index.dictionaries[0].values.length);
  assert.strictEqual(new Set(rows).size, new Set(index.dictionaries[0].values).size - 1);
});
