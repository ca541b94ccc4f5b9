'use strict';

// The pictures of docs/internals/: drawn by Vega from the numbers in benchmarks/pictures/.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { headlineSpec, roundsSpec } = require('../../benchmarks/article/drawing.js');
const { growthSpec } = require('../../benchmarks/cluster/growth-drawing.js');
const { COLOURS, draw } = require('../../benchmarks/pictures/chart.js');
const { drawAll } = require('../../benchmarks/pictures/stored.js');

const ROOT = path.join(__dirname, '..', '..');
const INTERNALS = path.join(ROOT, 'docs', 'internals');
const WHERE = { machine: '2 x "CPU" <A & B>', date: '2026-11-21' };

function textOf(file) {
  return fs.readFileSync(path.join(ROOT, file), 'utf8');
}

describe('pictures', () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pictures-'));
  /** @type {string | undefined} */
  let missing;
  let names = [];

  before(async () => {
    await draw({ data: { values: [] }, mark: 'point' }).catch(error => (missing = error.message));
    if (missing && process.env.REQUIRE_ALL !== '1') return;
    names = (await drawAll(directory)).map(file => path.basename(file));
  });
  after(() => fs.rmSync(directory, { recursive: true }));

  function test(name, run) {
    it(name, t => (missing && process.env.REQUIRE_ALL !== '1' ? t.skip(missing) : run()));
  }

  test('the pictures of docs/internals/ are those that the stored numbers draw', () => {
    const documented = fs.readdirSync(INTERNALS).filter(name => name.endsWith('.svg'));
    assert.deepEqual(documented.sort(), [...names].sort());
    for (const name of names) {
      const drawn = fs.readFileSync(path.join(directory, name), 'utf8');
      const isEqual = drawn === textOf(`docs/internals/${name}`);
      assert.ok(isEqual, `${name} is out of date: node benchmarks/pictures/draw.js`);
    }
  });

  test('a picture loads nothing, and every colour in it has one for dark screens', () => {
    const known = [...Object.values(COLOURS), 'none', 'transparent'];
    for (const name of names) {
      const svg = fs.readFileSync(path.join(directory, name), 'utf8');
      assert.doesNotMatch(svg, /href=|url\(|@import|<script|<image|NaN|Infinity|undefined/, name);
      const used = Array.from(svg.matchAll(/ (?:fill|stroke)="([^"]*)"/g), match => match[1]);
      assert.deepEqual(
        used.filter(colour => !known.includes(colour)),
        [],
        name,
      );
      assert.match(svg, /prefers-color-scheme:dark/);
    }
  });

  test('the picture at the top of README.md shows the numbers of the table there', () => {
    const [, text] = textOf('README.md').split('| P99 while scraped');
    const table = Array.from(text.split('\n\n')[0].matchAll(/ \**([\d.,]+) ms/g), match => match[1]);
    assert.equal(table.length, 12);
    const svg = fs.readFileSync(path.join(directory, 'benchmark-headline.svg'), 'utf8');
    const shown = Array.from(svg.matchAll(/<text[^>]*>([^<]*)</g), match => match[1]);
    assert.deepEqual(
      table.filter(number => !shown.includes(number)),
      [],
    );
  });

  test('one client, one size and costs below what can be measured are drawn', async () => {
    const point = { samples: 1000, wall: 5, primaryMain: -0.4, allProcesses: 0, files: null };
    const curves = [{ client: 'ours', workers: 2, points: [point] }];
    const svg = await draw(growthSpec({ ...WHERE, curves, notes: ['no scrape came through (a < b)'] }));
    assert.doesNotMatch(svg, /NaN|Infinity|undefined|null/);
    for (const text of ['2 x "CPU" &lt;A &amp; B&gt;', '(a &lt; b)']) assert.ok(svg.includes(text), text);
  });

  it('without numbers there is no picture', () => {
    assert.throws(() => growthSpec({ ...WHERE, curves: [], notes: [] }), /no curve to draw/);
    assert.throws(() => roundsSpec({ ...WHERE, rounds: [] }), /no run to draw/);
    assert.equal(headlineSpec({ ...WHERE, rounds: [] }), undefined);
  });
});
