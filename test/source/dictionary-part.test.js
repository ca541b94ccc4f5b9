'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { DictionaryPart } = require('../../lib/source/dictionary-part');
const { SeriesJournal } = require('../../lib/source/series-journal');
const { LabelIndex } = require('../../lib/series/label-index');
const { Counter } = require('../../lib/metric/counter');
const { viewOf } = require('../../lib/registry/metric-view');

const LABEL_SETS = 20_000;
/** What one step may read or write: 512 rows of two labels. */
const MOST_LABELS = 2000;
const MOST_BYTES = 150_000;

/** A dictionary part and the steps in which it encodes a counter with many label sets. */
function manyLabelSets() {
  const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a', 'b'], registers: [] });
  for (let i = 0; i < LABEL_SETS; i++) counter.inc({ a: `value ${i}`, b: 'b' });
  const journal = new SeriesJournal();
  journal.note([viewOf(counter)]);
  const dictionary = new DictionaryPart(journal.epoch, 0);
  return {
    journal,
    dictionary,
    steps: dictionary.add(journal.after({ epoch: journal.epoch, series: 0 }), journal.length),
  };
}

/** By how much a count rises at most in one step. */
function longestStep(steps, count) {
  let longest = 0;
  for (let isDone = false; !isDone;) {
    const before = count();
    isDone = steps.next().done;
    longest = Math.max(longest, count() - before);
  }
  return longest;
}

test('DictionaryPart reads a bounded number of label sets in each step, however many there are', t => {
  const read = t.mock.method(LabelIndex.prototype, 'idAt');
  const { steps } = manyLabelSets();
  const longest = longestStep(steps, () => read.mock.callCount());
  assert.strictEqual(read.mock.callCount(), LABEL_SETS * 2);
  assert.ok(longest <= MOST_LABELS, `${longest} labels in one step`);
});

test('DictionaryPart writes a bounded number of bytes in each step', () => {
  const { dictionary, steps } = manyLabelSets();
  const longest = longestStep(steps, () => dictionary.length);
  assert.ok(dictionary.length > LABEL_SETS * 12, 'it has all label sets');
  assert.ok(longest <= MOST_BYTES, `${longest} bytes in one step`);
});

test('DictionaryPart does not copy complete chunks when more is added', () => {
  const { journal, dictionary, steps } = manyLabelSets();
  let complete = [];
  while (!steps.next().done) {
    const now = [...dictionary.completeChunks];
    complete.forEach((chunk, i) => assert.strictEqual(now[i], chunk));
    complete = now;
  }
  assert.strictEqual(dictionary.end, journal.length);
  const chunks = dictionary.chunks();
  complete.forEach((chunk, i) => assert.strictEqual(chunks[i], chunk));
  assert.strictEqual(
    chunks.reduce((sum, { length }) => sum + length, 128),
    dictionary.length,
  );
});
