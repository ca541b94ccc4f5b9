'use strict';

// The article's benchmark: its statistics on values whose distribution is known, its plan, and what it
// writes. benchmark-article-load.test.js tests its load generator, benchmark-article-run.alone.test.js a
// whole run.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, after } = require('node:test');
const { bootstrapMedian, compare, judgeClaims } = require('../../benchmarks/article/comparison.js');
const { pageOf } = require('../../benchmarks/article/page.js');
const { planFor, ROUND_KEYS, runsOf, stepsOf } = require('../../benchmarks/article/plan.js');
const { describeRatios, describeRound } = require('../../benchmarks/article/report.js');
const { mergeResults, withResults, writeResults } = require('../../benchmarks/article/results.js');
const { CLIENT_KEYS, RUNS } = require('../../benchmarks/article/runs.js');
const { segmentOf } = require('../../benchmarks/article/segment.js');
const { randomFrom } = require('../../benchmarks/shared/random.js');

const WHERE = { machine: 'Node v24, 2 x "CPU" <A & B>', date: '2026-11-21' };
const NO_SCRAPES = { milliseconds: [], failures: [] };

/** A round whose latencies are made up: scraped ones are `factor` times as long. */
function roundOf(key, factors = {}, { repetitions = 5, failed = 0 } = {}) {
  const [round] = planFor({ rounds: [key] });
  const random = randomFrom(7);
  const segments = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const { key: run, client, scraped } of RUNS) {
      const factor = scraped ? (factors[client] ?? 1) : 1;
      const latencies = Array.from({ length: 2000 }, () => factor * (0.5 - Math.log(random() || 0.5)));
      const scrapes = scraped
        ? { milliseconds: [12, 15], failures: failed ? ['timed out <&>'] : [] }
        : NO_SCRAPES;
      segments.push(
        segmentOf({ repetition, run }, { latencies, failed: scraped ? failed : 0 }, scrapes, 0.05),
      );
    }
  }
  const saturation = { bare: 3100, 'prom-client': 2500, 'prometheus-io': 2600, ours: 2900 };
  const date = '2026-11-21T10:00:00.000Z';
  return { round, date, rate: 1000, saturation, expositionBytes: 500_000, segments, wrongTotals: {} };
}

describe('bootstrapMedian()', () => {
  it('the interval contains the median, and is wider if the values differ more', () => {
    const near = bootstrapMedian([0.9, 1, 1, 1.1, 1.05]);
    const far = bootstrapMedian([0.2, 1, 1, 3, 1.5]);
    for (const { low, median, high } of [near, far]) assert.ok(low <= median && median <= high);
    assert.ok(far.high - far.low > 2 * (near.high - near.low));
  });

  it('the interval of equal values has no width, and equal input gives equal intervals', () => {
    assert.deepEqual(bootstrapMedian([2, 2, 2]), { median: 2, low: 2, high: 2 });
    assert.deepEqual(bootstrapMedian([1, 5, 9, 4]), bootstrapMedian([1, 5, 9, 4]));
  });

  it('the interval contains the true median of the distribution nine times in ten', () => {
    const random = randomFrom(3);
    const held = Array.from({ length: 300 }, () => bootstrapMedian(Array.from({ length: 9 }, random))).filter(
      ({ low, high }) => low <= 0.5 && high >= 0.5,
    );
    assert.ok(held.length >= 270, `${held.length} of 300`);
  });
});

describe('a comparison', () => {
  const segmentsOf = valuesOfRepetitions =>
    valuesOfRepetitions.flatMap((values, repetition) =>
      Object.entries(values).map(([run, p99]) => ({ repetition, run, figures: { p99 } })),
    );
  const stock = { of: 'stock-scraped', by: ['stock'] };

  it('a comparison is the median of the ratios within repetitions, not the ratio of medians', () => {
    // a disturbance that comes and goes: both sides of a repetition are slower by it
    const values = [
      { stock: 1, 'stock-scraped': 10 },
      { stock: 100, 'stock-scraped': 1000 },
      { stock: 3, 'stock-scraped': 27 },
    ];
    const { median, ratios } = compare({ segments: segmentsOf(values) }, stock, 'p99');
    assert.deepEqual(
      ratios.map(ratio => ratio.toFixed(6)),
      ['10.000000', '10.000000', '9.000000'],
    );
    assert.equal(median.toFixed(6), '10.000000');
  });

  it('a run between two others is divided by their geometric mean', () => {
    const values = [{ ours: 2, 'ours-scraped': 8, 'ours-again': 8 }];
    const { median } = compare(
      { segments: segmentsOf(values) },
      { of: 'ours-scraped', by: ['ours', 'ours-again'] },
      'p99',
    );
    assert.ok(Math.abs(median - 2) < 1e-12);
  });

  it('a repetition without one of both sides is left out; without any repetition there is no comparison', () => {
    const values = [{ stock: 1, 'stock-scraped': 3 }, { stock: 1 }];
    assert.deepEqual(compare({ segments: segmentsOf(values) }, stock, 'p99').ratios.length, 1);
    assert.equal(compare({ segments: segmentsOf([{ stock: 1 }]) }, stock, 'p99'), undefined);
  });

  it('claims are judged by the factor between scraped and unscraped latencies', () => {
    const rounds = ['frequent-new', 'frequent-reused'].map(key =>
      roundOf(key, { 'prom-client': 40, ours: 1.3 }),
    );
    const claims = judgeClaims(rounds);
    assert.equal(claims.length, 3);
    for (const { ratio, stock: rival } of claims) {
      assert.ok(Math.abs(ratio.median - 1.3) < 0.2, `${ratio.median}`);
      assert.ok(rival.median > 30 && rival.median < 50, `${rival.median}`);
    }
    assert.match(describeRatios(rounds), /\| <= 1\.1x +\| 1\.\d+x \([^)]+\) +\| MISSED/);
  });

  it('the ratio of fewer than three repetitions is shown without an interval', () => {
    const text = repetitions => describeRatios([roundOf('article-new', {}, { repetitions })]);
    assert.match(text(2), /x \(only 2\)/);
    assert.match(text(3), /x \(\d+\.\d+–\d+\.\d+\)/);
    assert.doesNotMatch(text(3), /only/);
  });

  it('rounds with another number of samples than a claim names are not judged', () => {
    const measured = roundOf('frequent-new');
    measured.round.samples = 200;
    assert.deepEqual(judgeClaims([measured]), []);
  });
});

it('a request that failed counts as 10 seconds', () => {
  const latencies = Array.from({ length: 98 }, (_, index) => index + 1);
  const segment = segmentOf({ repetition: 0, run: 'stock' }, { latencies, failed: 2 }, NO_SCRAPES, null);
  assert.equal(segment.requests, 100);
  assert.deepEqual(segment.figures, { p50: 50, p99: 10_000, p995: 10_000, p999: 10_000, max: 10_000 });
});

describe('the plan', () => {
  it('every round has all runs at least five times, with at least two scrapes each', () => {
    const rounds = planFor({});
    assert.deepEqual(
      rounds.map(({ key }) => key),
      ROUND_KEYS,
    );
    for (const round of rounds) {
      assert.ok(round.repetitions >= 5 && round.seconds >= 2 * round.every, round.key);
      assert.deepEqual(round.clients, CLIENT_KEYS);
      for (let repetition = 0; repetition < round.repetitions; repetition++) {
        const runs = runsOf(round, repetition);
        assert.deepEqual(new Set(runs), new Set(RUNS));
        assert.equal(runs.length, RUNS.length);
      }
    }
  });

  it('the runs of a client follow each other; the first client and the direction change with each repetition', () => {
    const [round] = planFor({ rounds: ['article-new'] });
    const orders = [0, 1, 2, 3, 4].map(repetition => runsOf(round, repetition).map(({ key }) => key));
    for (const order of orders) {
      for (const { client } of RUNS) {
        const places = RUNS.filter(run => run.client === client).map(({ key }) => order.indexOf(key));
        assert.equal(Math.max(...places) - Math.min(...places), places.length - 1);
      }
    }
    const clientOf = key => RUNS.find(run => run.key === key).client;
    assert.equal(new Set(orders.map(([first]) => clientOf(first))).size, CLIENT_KEYS.length);
    const isUnscrapedFirst = orders.map(order => order.indexOf('stock') < order.indexOf('stock-scraped'));
    assert.deepEqual(isUnscrapedFirst, [true, false, true, false, true]);
  });

  it('every step has a title, and --short is planned to take less than four minutes', () => {
    const rounds = planFor({ short: true });
    const steps = rounds.flatMap((round, index) => stepsOf(round, index === 0));
    assert.equal(
      steps.length,
      rounds.reduce((sum, { repetitions }) => sum + 1 + repetitions * RUNS.length, 0),
    );
    assert.ok(steps.reduce((sum, { seconds }) => sum + seconds, 0) < 240);
    assert.match(steps[3].title, /^frequent-new, repetition 1 of 2: 15\.1\.3, scraped$/);
  });

  it('unknown rounds and clients, and segments too short for a scrape, are errors', () => {
    assert.throws(
      () => planFor({ rounds: ['article-old'] }),
      /unknown round article-old; known: article-new/,
    );
    assert.throws(() => planFor({ clients: ['theirs'] }), /unknown client theirs; known: bare/);
    assert.throws(() => planFor({ rounds: ['large-new'], seconds: 4 }), /too short for a scrape every 5 s/);
  });
});

describe('the page', () => {
  it('the page has the drawing and tables, escapes failures, and loads and runs nothing', () => {
    const rounds = [roundOf('frequent-new', { ours: 2 }, { failed: 1 })];
    const html = pageOf({ ...WHERE, rounds }, '<svg></svg>');
    assert.doesNotMatch(html, /<script|src=|href=|@import|url\(|undefined|NaN/);
    assert.match(html, /2026-11-21, Node v24, 2 x &quot;CPU&quot; &lt;A &amp; B&gt;\./);
    assert.match(html, /\n<svg><\/svg>/);
    assert.match(html, /timed out &lt;&amp;&gt; \(5 times\)/);
    assert.match(html, /<td class="missed">MISSED<\/td>/);
    for (const { title } of RUNS) assert.ok(html.includes(`<td>${title}</td>`), title);
  });
});

describe('results', () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'article-results-'));
  after(() => fs.rmSync(directory, { recursive: true }));
  const machine = 'a machine';

  async function written(date, rounds, on = machine) {
    const [json] = await writeResults({ date, machine: on, rounds }, directory);
    return json;
  }

  it('results of several files are merged: the rounds in order, the newest of equal ones', async () => {
    const old = { ...roundOf('article-new'), rate: 1 };
    const files = [
      await written('2026-11-21T12:00:00.000Z', [{ ...roundOf('article-new'), rate: 2 }]),
      await written('2026-11-21T11:00:00.000Z', [roundOf('overload-new'), old]),
    ];
    const { date, rounds } = mergeResults(files);
    assert.equal(date, '2026-11-21T12:00:00.000Z');
    assert.deepEqual(
      rounds.map(({ round, rate }) => [round.key, rate]),
      [
        ['article-new', 2],
        ['overload-new', 1000],
      ],
    );
    assert.match(describeRound(rounds[0]), /\| 5: ours, unscraped again +\| /);
  });

  it('results of different machines or of other programs are errors', async () => {
    const files = [
      await written('2026-11-21T12:00:00.000Z', [roundOf('article-new')]),
      await written('2026-11-21T13:00:00.000Z', [roundOf('article-new')], 'another'),
    ];
    assert.throws(() => mergeResults(files), /not of one machine: a machine and another/);
    const foreign = path.join(directory, 'foreign.json');
    fs.writeFileSync(foreign, '{"scenarios": []}');
    assert.throws(() => mergeResults([foreign]), /does not hold results of this benchmark/);
  });

  it('new results replace those in the document and nothing else', () => {
    const results = { date: '2026-11-21T12:00:00.000Z', machine, rounds: [roundOf('article-new')] };
    const text = fs.readFileSync(path.join(__dirname, '../../docs/internals/benchmark-article.md'), 'utf8');
    const once = withResults(text, results);
    assert.equal(withResults(once, results), once);
    assert.ok(once.includes('2026-11-21, a machine.') && once.includes('4: ours, scraped'));
    assert.equal(once.split('<!-- results')[0], text.split('<!-- results')[0]);
    assert.equal(once.split('<!-- end of results -->')[1], text.split('<!-- end of results -->')[1]);
    assert.throws(() => withResults('no marks', results), /no place for results/);
  });
});
