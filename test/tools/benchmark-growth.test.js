'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { judge } = require('../../benchmarks/cluster/budgets.js');
const { GrowthLimits, growthOf, growthTable } = require('../../benchmarks/cluster/growth.js');
const { planFor } = require('../../benchmarks/cluster/plan.js');

const RUN = path.join(__dirname, '../../benchmarks/cluster/run.js');
const CLIENTS = ['prom-client', 'prometheus-io', 'ours'];

function step(samples, workers = 2, clients = CLIENTS) {
  return { measure: 'growth', title: '', seconds: 1, scenario: { clients, samples, workers } };
}

function lane(client, walls, failures = []) {
  const runs = walls.map(wall => ({ wall, primaryMain: wall / 2, allProcesses: wall * 3 }));
  return { client, path: 'string', runs, bodies: runs.length, failures };
}

test('a client that needs more than ten seconds for a scrape is not measured with more samples and as many workers', () => {
  const limits = new GrowthLimits();
  limits.note(step(1000), [lane('prom-client', [9000, 10_001, 30_000]), lane('ours', [9000, 9999, 30_000])]);
  assert.deepEqual(limits.applyTo(step(5000)).scenario.clients, ['prometheus-io', 'ours']);
  assert.deepEqual(limits.applyTo(step(5000, 4)).scenario.clients, CLIENTS);
});

test('a client without a successful scrape is not measured with more samples', () => {
  const limits = new GrowthLimits();
  limits.note(step(1000), [lane('prometheus-io', [], ['run 1: timed out'])]);
  assert.deepEqual(limits.applyTo(step(5000)).scenario.clients, ['prom-client', 'ours']);
});

test('curves have the medians, and notes explain where and why one ends', () => {
  const { curves, notes } = growthOf([
    {
      step: step(1000),
      result: [lane('prom-client', [8, 2, 4]), lane('prometheus-io', [3]), lane('ours', [1])],
    },
    {
      step: step(5000),
      result: [
        lane('prom-client', [12_000]),
        lane('prometheus-io', [], ['run 1: timed out']),
        lane('ours', [2]),
      ],
    },
    { step: step(20_000, 2, ['ours']), result: [lane('ours', [5], ['warm-up 1: wrong body'])] },
  ]);
  assert.deepEqual(
    curves.map(({ client, points }) => [client, points.map(({ samples, wall }) => [samples, wall])]),
    [
      ['prom-client', [[1000, 4], [5000, 12_000]]], // prettier-ignore
      ['prometheus-io', [[1000, 3]]],
      ['ours', [[1000, 1], [5000, 2], [20_000, 5]]], // prettier-ignore
    ],
  );
  assert.deepEqual(notes, [
    '15.1.3, 2 workers: not measured above 5,000 samples, where a scrape took 12 s',
    '0.16.1, 2 workers: no scrape of 5,000 samples came through (run 1: timed out)',
    'ours, 2 workers: failures with 20,000 samples: 1 (the first: warm-up 1: wrong body)',
  ]);
});

test('a slow scrape of the largest size has no note', () => {
  const { notes } = growthOf([{ step: step(1000), result: [lane('prom-client', [12_000])] }]);
  assert.deepEqual(notes, []);
});

test('a size without a point is a dash in the table', () => {
  const point = { samples: 1000, wall: 5, primaryMain: 0.5, allProcesses: 12 };
  const curves = [
    { client: 'ours', workers: 2, points: [point, { ...point, samples: 5000 }] },
    { client: 'prom-client', workers: 2, points: [point] },
  ];
  const rows = growthTable({ curves, notes: [] }).split('\n');
  assert.match(rows[0], /\| 1,000 +\| 5,000 +\|$/);
  assert.match(rows[2], /^\| ours, 2 workers +\| 5 \/ 0\.50 \/ 12 \| 5 \/ 0\.50 \/ 12 \|$/);
  assert.match(rows[3], /^\| 15\.1\.3, 2 workers +\| 5 \/ 0\.50 \/ 12 \| – +\|$/);
});

test('the plan of --growth has all sizes and workers, small sizes first', () => {
  const steps = planFor({ short: false, growth: true, latency: true });
  for (const workers of [2, 4, 8]) {
    const sizes = steps
      .filter(({ scenario }) => scenario.workers === workers)
      .map(({ scenario }) => scenario.samples);
    assert.deepEqual(sizes, [1000, 5000, 20_000, 50_000, 100_000, 200_000]);
  }
  assert.ok(steps.every(({ measure, scenario }) => measure === 'growth' && scenario.runs === 3));
});

test('a full run measures growth last', () => {
  const measures = planFor({ short: false, latency: true }).map(({ measure }) => measure);
  const rest = planFor({ short: false, growth: false, latency: true });
  assert.ok(rest.length > 0 && rest.every(({ measure }) => measure !== 'growth'));
  assert.deepEqual(measures, [...rest.map(({ measure }) => measure), ...Array(18).fill('growth')]);
  const ofOurs = planFor({ short: false, clients: ['ours'], latency: false, runs: 2 });
  assert.deepEqual(ofOurs.at(-1).scenario.clients, ['ours']);
  assert.equal(ofOurs.at(-1).measure, 'growth');
  assert.equal(ofOurs.at(-1).scenario.runs, 2);
});

test('a short run and one of selected sizes do not measure growth', () => {
  for (const filter of [{ short: true }, { samples: 1000 }, { workers: 2 }, { kind: 'integers' }]) {
    const steps = planFor({ short: false, latency: true, ...filter });
    assert.ok(steps.length > 0 && steps.every(({ measure }) => measure !== 'growth'), JSON.stringify(filter));
  }
});

test('more than four workers: how the cost grows up to so many, in one curve of each client', () => {
  const steps = planFor({ short: false, latency: true, workers: 64 });
  assert.ok(steps.every(({ measure, scenario }) => measure === 'workers' && scenario.samples === 2000));
  const counts = steps.map(({ scenario }) => scenario.workers);
  assert.deepEqual(counts, [4, 8, 16, 32, 64]);
  const limits = new GrowthLimits();
  limits.note(steps[0], [lane('prom-client', [10_001])]);
  assert.deepEqual(limits.applyTo(steps[1]).scenario.clients, ['prometheus-io', 'ours']);
  const growth = growthOf(
    steps.map(each => ({ step: each, result: [lane('ours', [each.scenario.workers])] })),
  );
  assert.deepEqual(
    growth.curves.map(({ client, points }) => [client, points.map(({ workers, wall }) => [workers, wall])]),
    [['ours', counts.map(workers => [workers, workers])]],
  );
  assert.match(growthTable(growth), /\| 4 +\| 8 +\| 16 +\| 32 +\| 64 +\|\n.*\n\| ours +\| 4 \/ 2 \/ 12 \|/);
});

test('the budget for each of 64 workers is a gate, and is judged with 64 only', () => {
  const verdictsOf = (workers, cpu) => {
    const [each] = planFor({ short: false, latency: true, workers }).slice(-1);
    return judge(each, [{ client: 'ours', path: 'bytes', runs: [{ primaryMain: cpu }] }]);
  };
  const summary = ({ value, holds, gate }) => [value, holds, gate.holds];
  assert.deepEqual(verdictsOf(64, 0.14 * 64).map(summary), [[0.14, true, true]]);
  assert.deepEqual(verdictsOf(64, 0.16 * 64).map(summary), [[0.16, false, false]]);
  assert.deepEqual(verdictsOf(32, 1), []);
});

test(
  'options that exclude each other are errors',
  { skip: process.platform !== 'linux' && 'reads /proc' },
  () => {
    const wrong = [
      [['--growth', '--short'], /--growth and --short exclude each other/],
      [['--growth', '--no-growth'], /--growth and --no-growth exclude each other/],
      [['--document', '--no-growth'], /--document draws the growth, which these options leave out/],
      [['--document', '--samples', '1000'], /--document draws the growth, which these options leave out/],
    ];
    for (const [args, text] of wrong) {
      const { status, stderr } = spawnSync(process.execPath, [RUN, ...args], { encoding: 'utf8' });
      assert.match(stderr, text);
      assert.equal(status, 2);
    }
  },
);
