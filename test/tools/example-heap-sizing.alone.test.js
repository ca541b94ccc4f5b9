'use strict';

// example/heap-sizing as a person runs it, with real processes. The figures it prints have to agree with each
// other; no test expects a speed.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, describe, it } = require('node:test');
const { Program } = require('../fixtures/program');

const EXAMPLE = path.join(__dirname, '../../example/heap-sizing/heap-sizing.js');
const TIMEOUT = 300_000; // for a program that hangs

describe('example/heap-sizing', () => {
  // Of its own, because the program looks for what is left in it.
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'example-'));
  after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const start = args => new Program([EXAMPLE, ...args], { env: { TMPDIR: directory } });

  it(
    'the table has a row for each setting, and every request sent is counted',
    { timeout: TIMEOUT },
    async () => {
      const program = start(['--short']);
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

      const rows = rowsOf(output);
      assert.deepStrictEqual(
        rows.map(({ size }) => size),
        ['default', '2', '32'],
      );
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

  it(
    'the second round has the settings in reverse order, at the rate of --rate',
    { timeout: TIMEOUT },
    async () => {
      const args = ['--rounds', '2', '--seconds', '0.5', '--sizes', '4,default', '--rate', '50'];
      const program = start([...args]);
      assert.strictEqual(await program.ended(), 0, program.output + program.errors);
      const order = Array.from(program.output.matchAll(/^round (\d), semi-space (\S+)/gm), ([, ...run]) =>
        run.join(),
      );
      assert.deepStrictEqual([...new Set(order)], ['1,4', '1,default', '2,default', '2,4']);
      assert.match(program.output, /^50 requests a second$/m);
      // Two rounds of the same setting make one row with both of their shares.
      assert.match(program.output, /^ +4 .* \([\d.]+ %, [\d.]+ %\) /m);
      assert.match(program.output, / (\d+) answered, 0 failed; \w+: \1 {3}equal$/m);
    },
  );

  it('SIGTERM ends every process', { timeout: TIMEOUT }, async () => {
    const program = start(['--seconds', '30', '--rate', '20']);
    await program.line(/^round 1/);
    await program.stop();
    assert.strictEqual(await program.ended(), 130, program.output + program.errors);
    assert.match(program.output, /^nothing left running$/m);
  });

  it('wrong options print the usage', async () => {
    const wrong = [
      [['--sizes', '16,big'], '--sizes must be a whole number of at least 1, not big'],
      [['--sizes', '16,16'], '--sizes must be different, not 16,16'],
      [['--rounds', '0'], '--rounds must be a whole number of at least 1, not 0'],
    ];
    for (const [args, text] of wrong) {
      const program = start([...args]);
      assert.strictEqual(await program.ended(), 2);
      assert.ok(program.errors.startsWith(`${text}\n`), program.errors);
      assert.match(program.errors, /^ {2}--sizes /m);
    }
  });
});

/** The table that was printed. */
function rowsOf(output) {
  const lines = output.split('\n');
  const first = lines.findIndex(line => /^-+$/.test(line)) + 1;
  const rows = lines.slice(first, lines.indexOf('', first));
  return rows.map(line => {
    const [size, ...cells] = line.trim().split(/ {3,}/);
    const [throughput, scavenges, minor, other, share, , , , , newSpace, resident] = cells.map(parseFloat);
    return { size, throughput, scavenges, minor, other, share, newSpace, resident };
  });
}
