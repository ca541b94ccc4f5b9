'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { judge } = require('../../benchmarks/cluster/budgets.js');
const { drawGrowth } = require('../../benchmarks/cluster/growth-drawing.js');
const { GrowthLimits, growthOf, growthTable, curveTitle } = require('../../benchmarks/cluster/growth.js');
const { planFor } = require('../../benchmarks/cluster/plan.js');
const { parseXml } = require('./fixtures/strict-xml.js');

const RUN = path.join(__dirname, '../../benchmarks/cluster/run.js');
const WHERE = { machine: 'Node v20, 2 x "CPU" <A & B>', date: '2026-11-21' };
const CLIENTS = ['prom-client', 'prometheus-io', 'ours'];

function step(samples, workers = 2, clients = CLIENTS) {
  return { measure: 'growth', title: '', seconds: 1, scenario: { clients, samples, workers } };
}

function lane(client, walls, failures = []) {
  const runs = walls.map(wall => ({ wall, primaryMain: wall / 2, allProcesses: wall * 3 }));
  return { client, path: 'string', runs, bodies: runs.length, failures };
}

/** Nine curves over three sizes, whose costs differ by client and workers. */
function wholeGrowth() {
  const curves = CLIENTS.flatMap((client, place) =>
    [2, 4, 8].map(workers => ({
      client,
      workers,
      points: [1000, 20_000, 200_000].map(samples => {
        const wall = (samples * workers) / 10 ** (place + 3);
        return { samples, wall, primaryMain: wall / 2, allProcesses: wall * 3 };
      }),
    })),
  );
  return { curves, notes: ['15.1.3, 8 workers: no scrape came through (a < b & "c")'] };
}

test('the drawing is well-formed XML that loads nothing, with any text as machine and notes', () => {
  const svg = drawGrowth(wholeGrowth(), WHERE);
  const [root] = parseXml(svg);
  assert.equal(root.name, 'svg');
  assert.equal(root.attributes.xmlns, 'http://www.w3.org/2000/svg');
  assert.doesNotMatch(svg, /href|url\(|<script|<image/);
});

test('the XML reader of these tests rejects text that is not well-formed', () => {
  for (const broken of [
    '<g><text></g>',
    '<g x="1" x="2"/>',
    '<g x=1/>',
    '<g>a & b</g>',
    '<g>',
    '<g/><g/>',
    '<g>a < b</g>',
  ]) {
    assert.throws(() => parseXml(broken), broken);
  }
});

test('every line has a label in every panel, and no two labels overlap', () => {
  const growth = wholeGrowth();
  const texts = parseXml(drawGrowth(growth, WHERE)).filter(({ name }) => name === 'text');
  const heights = [];
  for (const title of growth.curves.map(curveTitle)) {
    const labels = texts.filter(({ text }) => text === title);
    assert.equal(labels.length, 3, title);
    heights.push(...labels.map(({ attributes }) => Number(attributes.y)));
  }
  heights.sort((one, other) => one - other);
  for (let index = 1; index < heights.length; index++) assert.ok(heights[index] - heights[index - 1] >= 13);
});

test('the label of a line that ends before the others names its last size', () => {
  const growth = wholeGrowth();
  growth.curves[0].points.pop();
  const texts = parseXml(drawGrowth(growth, WHERE)).filter(
    ({ text }) => text === '15.1.3, 2 workers (to 20,000)',
  );
  assert.equal(texts.length, 3);
});

test('axes have labels with their units, and a tick for each measured size', () => {
  const texts = parseXml(drawGrowth(wholeGrowth(), WHERE))
    .filter(({ name }) => name === 'text')
    .map(({ text }) => text);
  for (const label of ['milliseconds', 'samples per worker', '1,000', '20,000', '200,000']) {
    assert.ok(texts.filter(text => text === label).length >= 3, label);
  }
});

test('clients differ by dash pattern, without colour', () => {
  const lines = parseXml(drawGrowth(wholeGrowth(), WHERE)).filter(({ name }) => name === 'polyline');
  assert.equal(lines.length, 27);
  assert.equal(new Set(lines.map(({ attributes }) => attributes['stroke-dasharray'])).size, CLIENTS.length);
});

test('both axes are logarithmic: equal ratios have equal lengths', () => {
  const points = [1, 10, 100].map(factor => {
    const wall = 7 * factor;
    return { samples: 1000 * factor, wall, primaryMain: wall, allProcesses: wall };
  });
  const svg = drawGrowth({ curves: [{ client: 'ours', workers: 2, points }], notes: [] }, WHERE);
  const line = parseXml(svg).find(({ name }) => name === 'polyline');
  const [first, second, third] = line.attributes.points.split(' ').map(pair => pair.split(',').map(Number));
  for (const axis of [0, 1]) {
    assert.ok(Math.abs(second[axis] - first[axis]) > 50);
    assert.ok(Math.abs(third[axis] - second[axis] - (second[axis] - first[axis])) < 0.3);
  }
});

test('zero, negative noise and a single point are drawn within the drawing', () => {
  const point = { samples: 1000, wall: 5, primaryMain: -0.4, allProcesses: 0 };
  const svg = drawGrowth({ curves: [{ client: 'ours', workers: 2, points: [point] }], notes: [] }, WHERE);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined|null/);
  const elements = parseXml(svg);
  const { width, height } = elements[0].attributes;
  const lines = elements.filter(({ name }) => name === 'polyline');
  assert.equal(lines.length, 3);
  for (const { attributes } of lines) {
    const [x, y] = attributes.points.split(',').map(Number);
    assert.ok(x > 0 && x < Number(width) && y > 0 && y < Number(height));
  }
});

test('a drawing of all curves has no NaN', () => {
  assert.doesNotMatch(drawGrowth(wholeGrowth(), WHERE), /NaN|Infinity|undefined|null/);
});

test('the drawing has the date, the machine and every note', () => {
  const svg = drawGrowth(wholeGrowth(), WHERE);
  assert.match(svg, /2026-11-21, Node v20, 2 x &quot;CPU&quot; &lt;A &amp; B&gt;/);
  assert.match(svg, />15\.1\.3, 8 workers: no scrape came through \(a &lt; b &amp; &quot;c&quot;\)</);
});

test('a drawing without curves is an error', () => {
  assert.throws(() => drawGrowth({ curves: [], notes: [] }, WHERE), /no curve to draw/);
});

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
  const texts = parseXml(drawGrowth(growth, WHERE)).filter(({ name }) => name === 'text');
  for (const label of ['ours', 'workers', '64'])
    assert.equal(texts.filter(({ text }) => text === label).length, 3, label);
});

test('many workers: the drawing also has CPU for each worker, files, descriptors, IPC and memory', () => {
  const steps = planFor({ short: false, latency: true, workers: 64 });
  const growth = growthOf(
    steps.map(each => {
      const { workers } = each.scenario;
      const common = { wall: workers, primaryMain: workers / 10, allProcesses: workers * 3, peakPrimary: 80 };
      const figures = { ...common, descriptors: workers, ipcPerWorker: 390, peakWorker: 50 };
      const rival = { client: 'prom-client', runs: [{ ...figures, files: null }], failures: [] };
      return {
        step: each,
        result: [rival, { client: 'ours', runs: [{ ...figures, files: 2 * workers }], failures: [] }],
      };
    }),
  );
  const elements = parseXml(drawGrowth(growth, WHERE));
  const texts = elements.filter(({ name }) => name === 'text').map(({ text }) => text);
  const titles = texts.filter(text => /^(?:Wall|CPU|Files|Open|IPC|Peak) /.test(text));
  assert.equal(titles.length, 8, titles.join('\n'));
  for (const unit of ['files', 'descriptors', 'bytes']) assert.ok(texts.includes(unit), unit);
  assert.equal(texts.filter(text => text === 'MiB').length, 2);
  // prom-client has no files.
  assert.equal(elements.filter(({ name }) => name === 'polyline').length, 8 + 7);
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
