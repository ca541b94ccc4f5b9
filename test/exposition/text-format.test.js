'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { TEXT, OPENMETRICS } = require('../../lib/exposition/formats');
const { renderBytes } = require('../../lib/exposition/text-bytes');
const { runThrough } = require('../../lib/event-loop/slices');
const { labelPair, escapeHelp } = require('../../lib/exposition/label-text');
const { sampleFamily } = require('../../lib/exposition/sample-family');
const { renderText, samplesOf } = require('../fixtures/unit-scrape');

const PIECE_CHARACTERS = 65536;

/** A family with given rows: labels as text, and numbers. */
function family({
  name = 'm',
  help = 'help',
  type = 'gauge',
  layout = { kind: 'value', marks: [] },
  rows = [],
  ...rest
}) {
  return {
    name,
    help,
    type,
    layout,
    rows: () => rows.keys(),
    pageOf: row => rows[row].numbers,
    offsetOf: () => 0,
    labelText: row => rows[row].labels ?? '',
    quantileValues: row => rows[row].quantiles,
    ...rest,
  };
}

function textOf(families, openMetrics = false) {
  return renderText(families, openMetrics);
}

/** The lines of one family after HELP and TYPE. */
function linesOf(one, openMetrics) {
  return [...(openMetrics ? OPENMETRICS : TEXT).write(one)].join('').split('\n').slice(2);
}

test('text format: long label values and help texts are escaped in pieces', t => {
  const times = 300_000;
  const text = '"\\\n.'.repeat(times);
  const replace = t.mock.method(String.prototype, 'replace');
  const [pair, help] = [labelPair('a', text), escapeHelp(text)];
  const lengths = replace.mock.calls.map(call => String(call.this).length);
  replace.mock.restore();
  assert.ok(pair === `a="${'\\"\\\\\\n.'.repeat(times)}"`);
  assert.ok(help === '"\\\\\\n.'.repeat(times));
  // 30 million matches of one expression end the process.
  assert.ok(Math.max(...lengths) <= 2 ** 20, `${lengths}`);
});

test('text format: each sample of a custom metric object has its own name', () => {
  const metric = {
    name: 'm',
    help: 'help',
    type: 'histogram',
    values: [
      { value: 1, labels: { a: 'x' } },
      {
        value: 2,
        labels: { a: '', b: 0 },
        metricName: 'm_bucket',
        sharedLabels: { c: 'shared', a: 'hidden' },
      },
      { value: null, labels: null, metricName: '' },
      { value: '3' },
    ],
  };
  assert.deepStrictEqual(linesOf(sampleFamily(metric, { d: 'default', b: 'hidden', c: 'hidden' })), [
    'm{a="x",d="default",b="hidden",c="hidden"} 1',
    'm_bucket{a="",b="0",d="default",c="shared"} 2',
    'm{d="default",b="hidden",c="hidden"} Nan',
    'm{d="default",b="hidden",c="hidden"} 3',
  ]);
  assert.deepStrictEqual(linesOf(sampleFamily({ name: 'm', help: 'help', type: 'gauge' }, {})), []);
});

test('text format: pieces have a bounded size, and joined they equal the text written row by row', () => {
  const labels = 'path="/some/path/that/is/not/short"';
  const rowsOf = (count, width) =>
    Array.from({ length: count }, (_, i) => ({
      labels: `${labels},i="${i}"`,
      numbers: Array.from({ length: width }, (_, k) => i * k),
      quantiles: [i, i],
    }));
  const layouts = [
    ['gauge', { kind: 'value', marks: [] }, 1],
    ['histogram', { kind: 'histogram', marks: Array.from({ length: 20 }, (_, i) => i) }, 22],
    ['summary', { kind: 'summary', marks: [0.5, 0.9] }, 2],
    ['gauge', { kind: 'value', marks: [] }, 1, () => 'm_x'],
  ];
  for (const openMetrics of [false, true]) {
    for (const [type, layout, width, sampleName] of layouts) {
      for (const count of [0, 1, 1500]) {
        const rows = rowsOf(count, width);
        const whole = family({ type, layout, rows, sampleName });
        const rowByRow = rows.map(row =>
          linesOf(family({ type, layout, rows: [row], sampleName }), openMetrics),
        );
        const lines = textOf([whole, family({ name: 'after' })], openMetrics).split('\n');
        const last = lines.indexOf('# HELP after help') - (openMetrics ? 0 : 1);
        assert.deepStrictEqual(lines.slice(2, last), rowByRow.flat());
        const pieces = [...(openMetrics ? OPENMETRICS : TEXT).write(whole)];
        assert.deepStrictEqual(pieces.join('').split('\n').slice(2), rowByRow.flat());
        const longestRow = Math.max(0, ...rowByRow.map(row => row.join('\n').length));
        for (const piece of pieces)
          assert.ok(piece.length < 2 * PIECE_CHARACTERS + longestRow, `${piece.length}`);
        if (count === 1500) assert.ok(pieces.length > 2, `${pieces.length} pieces`);
      }
    }
  }
});

test('text format: many small families are combined into few pieces', t => {
  const families = Array.from({ length: 3000 }, (_, i) =>
    family({ name: `m${i}`, rows: [{ numbers: [i] }] }),
  );
  const write = t.mock.method(Buffer.prototype, 'write');
  const text = textOf(families);
  assert.ok(write.mock.callCount() <= 4, `${write.mock.callCount()} pieces`);
  assert.strictEqual(samplesOf(text).size, 3000);
});

test('families that cannot be written are left out of the page, wherever they are, and reported', () => {
  const good = name => family({ name, rows: [{ labels: 'a="ä"', numbers: [1] }] });
  const bad = at => {
    const rows = Array.from({ length: at + 1 }, (_, i) => ({ labels: `a="${i} ä"`, numbers: [i] }));
    const labelText = row => (row === at ? assert.fail('no text') : rows[row].labels);
    return family({ name: `bad_${at}`, rows, labelText });
  };
  const written = (families, format, onFailure) => {
    const { buffer, length } = runThrough(renderBytes(families, format, 16, onFailure));
    return Buffer.from(buffer, 0, length).toString();
  };
  for (const format of [TEXT, OPENMETRICS]) {
    const families = [bad(0), good('x'), bad(20_000), bad(1), good('y'), bad(20_000)];
    const failed = [];
    const page = written(families, format, ({ name }, { message }) => failed.push(`${name}: ${message}`));
    assert.deepStrictEqual(page, written([good('x'), good('y')], format));
    const expected = ['bad_0', 'bad_20000', 'bad_1', 'bad_20000'].map(name => `${name}: no text`);
    assert.deepStrictEqual(failed, expected);
    const shown = written([bad(0)], format, () => {});
    assert.deepStrictEqual(shown, written([], format));
    assert.throws(() => written(families, format), /no text/);
  }
});
