'use strict';

// example/concurrency and example/heap-sizing as a person runs them, with real processes. The figures that
// they print have to agree with each other; no test expects a speed.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, describe, it } = require('node:test');
const { Program } = require('../fixtures/program');

const TIMEOUT = 300_000; // for a program that hangs
const PROGRESS = /^limit (\d+) +(\d+) in flight, \d+ queued, \d+ tasks\/s, GC [\d.]+ %, (\d):(\d\d) left$/gm;

// Of their own, because the programs look for what is left in it.
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'example-'));
after(() => fs.rmSync(directory, { recursive: true, force: true }));

const fileOf = name => path.join(__dirname, `../../example/${name}/${name}.js`);
const startExample = (name, args) => new Program([fileOf(name), ...args], { env: { TMPDIR: directory } });

/** The cells of the table that was printed, row by row. */
function cellsOf(output) {
  const lines = output.split('\n');
  const first = lines.findIndex(line => /^-+$/.test(line)) + 1;
  return lines.slice(first, lines.indexOf('', first)).map(line => line.trim().split(/ {3,}/));
}

describe('example/concurrency', () => {
  it(
    'the table has a row for each limit, and every request sent is counted',
    { timeout: TIMEOUT },
    async () => {
      const program = startExample('concurrency', ['--short']);
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

      const rows = limitRowsOf(output);
      const limits = rows.map(({ limit }) => limit);
      assert.deepStrictEqual(limits, [1, 4, 16]);
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
});

describe('example/heap-sizing', () => {
  it(
    'the table has a row for each setting, and every request sent is counted',
    { timeout: TIMEOUT },
    async () => {
      const program = startExample('heap-sizing', ['--short']);
      // ended() waits for its children as well, because they hold its output.
      assert.strictEqual(await program.ended(), 0, program.output + program.errors);
      const { output } = program;
      const figures = String.raw`\d+ tasks\/s, [\d.]+ scavenges\/s, GC [\d.]+ %, (\d:\d\d) left`;
      const leftOf = name => new RegExp(`^${name} +${figures}$`, 'm').exec(output)?.[1];
      const left = ['looking for a rate', 'round 1, semi-space default', 'round 1, semi-space 32'].map(
        leftOf,
      );
      // By the plan, three runs of two seconds follow the one that looks for a rate.
      assert.ok(left[0] >= '0:06' && left[0] <= '0:09', output);
      assert.ok(left[1] <= left[0] && left[2] <= '0:02', output);

      const rows = settingRowsOf(output);
      const sizes = rows.map(({ size }) => size);
      assert.deepStrictEqual(sizes, ['default', '2', '32']);
      for (const row of rows) {
        assert.ok(row.throughput > 0, output);
        assert.ok(row.minor >= 0 && row.minor <= row.share + 0.11 && row.share <= 100, output);
        assert.ok(Math.abs(row.minor + row.other - row.share) < 0.21, output);
        assert.ok(row.newSpace > 0 && row.resident > row.newSpace, output);
      }
      // The setting reached the service: the new space is at most two semi-spaces, and a small one is full
      // more often.
      const [, small, large] = rows;
      assert.ok(small.scavenges / small.throughput > large.scavenges / large.throughput, output);
      assert.ok(large.newSpace <= 64 && large.newSpace > small.newSpace, output);
      assert.match(
        output,
        /^(Choose --max-semi-space-size=(2|32): it|Leave it as it is: Node's own setting) /m,
      );
      const [, sent] = /^check: (\d+) requests sent, \1 answered, 0 failed; \w+: \1 {3}equal$/m.exec(output);
      assert.ok(Number(sent) > 0);
      assert.match(output, /^nothing left running$/m);
    },
  );
});

/** The table of example/concurrency. */
function limitRowsOf(output) {
  return cellsOf(output).map(cells => {
    const [limit, throughput, queued, gcShare, , busy, newSpace] = cells.toSpliced(2, 3).map(parseFloat);
    const lookup = cells[2].split(' / ').map(Number);
    return { limit, throughput, lookup, queued, gcShare, busy, newSpace };
  });
}

/** The table of example/heap-sizing. */
function settingRowsOf(output) {
  return cellsOf(output).map(([size, ...cells]) => {
    const [throughput, scavenges, minor, other, share, , , , , newSpace, resident] = cells.map(parseFloat);
    return { size, throughput, scavenges, minor, other, share, newSpace, resident };
  });
}
