'use strict';

// What the figures of the article's benchmark rest on: the ratio of two runs, and the table in README.md.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { compare } = require('../../benchmarks/article/comparison.js');
const { withHeadline } = require('../../benchmarks/article/headline.js');

describe('a comparison', () => {
  it('a comparison is the median of the ratios within repetitions, not the ratio of medians', () => {
    // A disturbance that comes and goes: both sides of a repetition are slower by it.
    const pairs = [
      [1, 10],
      [100, 1000],
      [3, 27],
    ];
    const segments = pairs.flatMap(([plain, scraped], repetition) => [
      { repetition, run: 'stock', figures: { p99: plain } },
      { repetition, run: 'stock-scraped', figures: { p99: scraped } },
    ]);
    const { median } = compare({ segments }, { of: 'stock-scraped', by: ['stock'] }, 'p99');
    assert.equal(median.toFixed(6), '10.000000');
  });
});

describe('the table at the top of README.md', () => {
  const read = file => fs.readFileSync(path.join(__dirname, '../..', file), 'utf8');
  const medians = JSON.parse(read('benchmarks/pictures/article.json'));

  it('README.md has the numbers of the stored results, with the conditions of their measurement', () => {
    const text = read('README.md');
    assert.equal(withHeadline(text, medians), text);
  });

  it('a result without one of the rounds at the top leaves README.md alone', () => {
    const rounds = medians.rounds.filter(({ key }) => key !== 'large-new');
    assert.equal(withHeadline('no marks', { ...medians, rounds }), 'no marks');
  });
});
