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
