'use strict';

// example/concurrency as a person runs it, with real processes. The figures it prints have to agree with each
// other; no test expects a speed.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, describe, it } = require('node:test');
const { kneeOf, verdict } = require('../../example/concurrency/knee');
const { Limiter } = require('../../example/concurrency/limiter');
const { histogramQuantile, ScrapeWindow } = require('../../example/concurrency/scrape-window');
const { levelOf } = require('../../example/concurrency/task-metrics');
const { TimeLeft } = require('../../example/concurrency/time-left');
const { samples } = require('../../lib/testing/testing');
const { Program } = require('../fixtures/program');

const EXAMPLE = path.join(__dirname, '../../example/concurrency/concurrency.js');
const TIMEOUT = 300_000; // for a program that hangs
const PROGRESS = /^limit (\d+) +(\d+) in flight, \d+ queued, \d+ tasks\/s, GC [\d.]+ %, (\d):(\d\d) left$/gm;

describe('example/concurrency', () => {
  // Of its own, because the program looks for what is left in it.
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'example-'));
  after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const start = args => new Program([EXAMPLE, ...args], { env: { TMPDIR: directory } });

  it(
    'the table has a row for each limit, and every request sent is counted',
    { timeout: TIMEOUT },
    async () => {
      const program = start(['--short']);
      // ended() waits for its children as well, because they hold its output.
      assert.strictEqual(await program.ended(), 0, program.output + program.errors);
      const { output } = program;
      const progress = Array.from(output.matchAll(PROGRESS), ([, ...figures]) => figures.map(Number));
      // The limit rises from 1. The warm-up, with 4 tasks at a time, comes before.
      for (const [limit, inFlight] of progress) assert.ok(inFlight <= Math.max(limit, 4), output);
      // What is left of three steps of a second and a quarter, by the plan.
      const left = progress.map(([, , minutes, seconds]) => minutes * 60 + seconds);
      assert.ok(left.length >= 3 && left[0] <= 4 && left.at(-1) === 0, output);
      for (let i = 1; i < left.length; i++) assert.ok(left[i] <= left[i - 1], output);

      const rows = rowsOf(output);
      assert.deepStrictEqual(
        rows.map(({ limit }) => limit),
        [1, 4, 16],
      );
      for (const row of rows) {
        assert.ok(row.throughput > 0 && row.queued >= 0, output);
        assert.ok(row.gcShare >= 0 && row.gcShare <= 100, output);
        assert.ok(row.busy > 0 && row.busy <= 100, output);
        assert.ok(row.newSpace >= 1, output);
        // A lookup waits 11 ms at least; P99 is no less than P50.
        const [p50, p99] = row.lookup;
        assert.ok(p50 > 10 && p99 >= p50, output);
      }
      assert.match(output, /^(Choose a limit of (1|4|16):|Throughput still grew at a limit of 16,) /m);
      assert.match(output, /^ {2}P99 +histogram_quantile\(0\.99, sum by \(le, operation, concurrency\)/m);
      const [, sent] = /^check: (\d+) requests sent, \1 answered, 0 failed; \w+: \1 {3}equal$/m.exec(output);
      assert.ok(Number(sent) > 0);
      assert.match(output, /^nothing left running$/m);
    },
  );

  it('SIGTERM ends every process', { timeout: TIMEOUT }, async () => {
    const program = start(['--steps', '2,4', '--seconds', '30']);
    await program.line(/^warm-up/);
    await program.stop();
    assert.strictEqual(await program.ended(), 130, program.output + program.errors);
    assert.match(program.output, /^interrupted$/m);
    assert.match(program.output, /^nothing left running$/m);
  });

  it('SIGKILL of the program ends its processes too', { timeout: TIMEOUT }, async () => {
    const child = spawn(process.execPath, [EXAMPLE, '--short', '--seconds', '30']);
    let seen = '';
    for await (const text of child.stdout.setEncoding('utf8')) {
      seen += text;
      if (seen.includes('warm-up') && !child.killed) child.kill('SIGKILL');
    }
    if (child.signalCode === null) await once(child, 'exit');
    assert.strictEqual(child.signalCode, 'SIGKILL');
  });

  it('wrong options print the usage', async () => {
    const wrong = [
      [['--steps', '4,2'], '--steps must rise, not 4,2'],
      [['--seconds', '0'], '--seconds must be a number of at least 0.5, not 0'],
      [['--clients', '1.5'], '--clients must be a whole number of at least 1, not 1.5'],
    ];
    for (const [args, text] of wrong) {
      const program = start([...args]);
      assert.strictEqual(await program.ended(), 2);
      assert.ok(program.errors.startsWith(`${text}\n`), program.errors);
      assert.match(program.errors, /^ {2}--steps /m);
    }
  });
});

/** The table that was printed. */
function rowsOf(output) {
  const lines = output.split('\n');
  const first = lines.findIndex(line => /^-+$/.test(line)) + 1;
  const rows = lines.slice(first, lines.indexOf('', first));
  return rows.map(line => {
    const cells = line.trim().split(/ {3,}/);
    const [limit, throughput, queued, gcShare, , busy, newSpace] = cells.toSpliced(2, 3).map(parseFloat);
    const lookup = cells[2].split(' / ').map(Number);
    return { limit, throughput, lookup, queued, gcShare, busy, newSpace };
  });
}

describe("the example's limiter", () => {
  it('the limiter admits as many tasks as its limit, the others in their order, and more if the limit rises', async () => {
    const limiter = new Limiter(2);
    const entered = [];
    for (let task = 1; task <= 6; task++) limiter.enter().then(() => entered.push(task));
    await null;
    assert.deepStrictEqual([entered, limiter.inFlight, limiter.queued], [[1, 2], 2, 4]);
    limiter.leave();
    await null;
    assert.deepStrictEqual([entered, limiter.inFlight, limiter.queued], [[1, 2, 3], 2, 3]);
    limiter.limit = 4;
    await null;
    assert.deepStrictEqual([entered, limiter.inFlight, limiter.queued], [[1, 2, 3, 4, 5], 4, 1]);
    limiter.limit = 1;
    for (let i = 0; i < 3; i++) limiter.leave();
    await null;
    assert.deepStrictEqual([entered.length, limiter.inFlight], [5, 1]);
    limiter.leave();
    await null;
    assert.deepStrictEqual([entered.length, limiter.inFlight, limiter.queued], [6, 1, 0]);
  });

  it('levelOf() has eleven levels', () => {
    assert.deepStrictEqual([1, 2, 3, 4, 5, 64, 65].map(levelOf), [1, 2, 4, 4, 8, 64, 128]);
    const levels = new Set(Array.from({ length: 5000 }, (_, i) => levelOf(i + 1)));
    assert.strictEqual(levels.size, 11);
  });
});

describe("the example's reading of scrapes", () => {
  const page = async (at, lines) => ({ at, samples: await samples(lines.join('\n')) });
  const pages = Promise.all([
    page(1000, [
      '# TYPE runs counter',
      'runs{kind="a"} 3',
      'runs{kind="b"} 10',
      '# TYPE size gauge',
      'size 5',
    ]),
    page(2000, [
      '# TYPE runs counter',
      'runs{kind="a"} 4',
      'runs{kind="b"} 10',
      '# TYPE size gauge',
      'size 9',
    ]),
    page(5000, [
      '# TYPE runs counter',
      'runs{kind="a"} 7',
      'runs{kind="b"} 10.5',
      'runs{kind="new"} 1',
      '# TYPE size gauge',
      'size 2',
    ]),
  ]);

  it('increases and rates are those of the window, of selected series or all', async () => {
    const window = new ScrapeWindow(await pages);
    assert.strictEqual(window.increase('runs', { kind: 'a' }), 4);
    assert.strictEqual(window.increase('runs'), 5.5);
    assert.strictEqual(window.rate('runs', { kind: 'new' }), 0.25);
    assert.strictEqual(window.increase('runs', { kind: 'none' }), 0);
    assert.strictEqual(window.max('size'), 9);
    assert.strictEqual(window.last('size'), 2);
    assert.strictEqual(window.rises('size'), 4);
  });

  it('a histogram without series is empty', async () => {
    const before = await page(0, ['# TYPE h histogram']);
    const after = await page(1000, [
      '# TYPE h histogram',
      'h_bucket{le="0.1",path="/"} 1',
      'h_bucket{le="+Inf",path="/"} 2',
      'h_sum{path="/"} 3',
      'h_count{path="/"} 2',
    ]);
    const observed = new ScrapeWindow([before, after]);
    assert.strictEqual(observed.increase('h_count'), 2);
    assert.deepStrictEqual(observed.buckets('h', { path: '/' }), [
      { bound: 0.1, count: 1 },
      { bound: Infinity, count: 2 },
    ]);
    assert.deepStrictEqual(new ScrapeWindow([before]).buckets('h'), []);
  });

  it('histogramQuantile() agrees with histogram_quantile of PromQL', () => {
    const buckets = [
      { bound: 1, count: 10 },
      { bound: 2, count: 10 },
      { bound: 4, count: 18 },
      { bound: Infinity, count: 20 },
    ];
    assert.strictEqual(histogramQuantile(0.25, buckets), 0.5); // rank 5 of the 10 up to 1
    assert.strictEqual(histogramQuantile(0.5, buckets), 1);
    assert.strictEqual(histogramQuantile(0.7, buckets), 3); // rank 14: halfway through the 8 between 2 and 4
    assert.strictEqual(histogramQuantile(0.99, buckets), 4); // above all bounds
    assert.ok(Number.isNaN(histogramQuantile(0.5, [])));
  });
});

describe("the example's time left", () => {
  it('the time left is the rest of the current phase and all later ones', () => {
    let seconds = 1000;
    const left = new TimeLeft([10, 60, 60], () => seconds * 1000);
    left.begin();
    assert.strictEqual(`${left}`, '2:10 left');
    seconds += 3.5;
    assert.strictEqual(`${left}`, '2:07 left');
    seconds += 100; // which takes longer than planned
    assert.strictEqual(`${left}`, '2:00 left');
    left.begin();
    assert.strictEqual(`${left}`, '2:00 left');
    seconds += 1;
    assert.strictEqual(`${left}`, '1:59 left');
    left.begin(); // which was shorter
    seconds += 60;
    assert.strictEqual(`${left}`, '0:00 left');
  });
});

describe("the example's verdict", () => {
  const step = (limit, throughput, p99, gcShare) => ({
    limit,
    throughput,
    latency: { lookup: { p99 }, report: { p99: p99 * 2 + limit / 1000 } },
    gcShare,
  });

  it('the verdict names the lowest limit near the maximum, the limit below it, and the price of higher ones', () => {
    const steps = [step(1, 100, 0.01, 0), step(2, 190, 0.01, 0.01), step(4, 200, 0.05, 0.2)];
    assert.strictEqual(kneeOf(steps), steps[1]);
    assert.strictEqual(
      verdict(steps),
      'Choose a limit of 2: there the process does 190 tasks a second, and 100 at 1.\n' +
        'Up to 4 throughput changed by +5 %, and the P99 of lookup went from 10 ms to 50 ms.\n' +
        'Garbage collection takes 1.0 % of the time at a limit of 2 and 20.0 % at 4: ' +
        'see example/heap-sizing for what a larger new space makes of that.',
    );
  });

  it('the verdict reports a knee that was not reached, and a garbage collector that is not the reason', () => {
    const text = verdict([step(1, 100, 0.01, 0.01), step(2, 190, 0.01, 0.01)]);
    assert.match(text, /^Throughput still grew at a limit of 2, .* --steps 2,4,8\.\n/);
    assert.match(text, /at a limit of 2: it is not what limits the process\.$/);
    assert.match(verdict([step(8, 190, 0.01, 0.01)]), /^One limit has no knee: .* --steps 8,16\./);
  });

  it('the verdict reports a throughput that fell', () => {
    const text = verdict([step(1, 100, 0.01, 0), step(2, 80, 0.02, 0)]);
    assert.match(text, /^Choose a limit of 1: there the process does 100 tasks a second\.$/m);
    assert.match(text, /throughput changed by -20 %/);
  });
});
