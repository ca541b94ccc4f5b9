'use strict';

// The progress of a benchmark, on a terminal and in a log: the current step and the time left.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');
const { Progress } = require('../../benchmarks/shared/progress');

const PHASES = path.join(__dirname, '../../benchmarks/phases/run.js');

/** A stream that records what is written, and a clock that the test sets. */
function stage(steps, terminal = {}) {
  const clock = { seconds: 1000 };
  const writes = [];
  const stream = { ...terminal, write: text => writes.push(text) };
  return { clock, writes, progress: new Progress(steps, stream, () => clock.seconds * 1e3) };
}

describe('the progress of a benchmark in a log', () => {
  it('every step has a line with the estimated time left', () => {
    const { writes, progress, clock } = stage([
      { title: 'small', seconds: 10 },
      { title: 'large', seconds: 50 },
    ]);
    progress.begin();
    clock.seconds += 10;
    progress.end();
    progress.begin();
    progress.end();
    assert.deepStrictEqual(writes, ['[1/2] small — about 60 s left\n', '[2/2] large — about 50 s left\n']);
  });

  it('a long step has another line each ten seconds', () => {
    const { writes, progress, clock } = stage([{ title: 'long', seconds: 60 }]);
    progress.begin();
    for (let done = 0; done < 12; done++) {
      progress.repetition(done, 12);
      clock.seconds += 5;
    }
    assert.deepStrictEqual(writes.slice(0, 3), [
      '[1/1] long — about 60 s left\n',
      '[1/1] long, repetition 3 of 12 — about 50 s left\n',
      '[1/1] long, repetition 5 of 12 — about 40 s left\n',
    ]);
    assert.strictEqual(writes.length, 6);
  });

  it('the time left is scaled by the error of the previous estimates', () => {
    const { writes, progress, clock } = stage([
      { title: 'first', seconds: 10 },
      { title: 'second', seconds: 100 },
    ]);
    progress.begin();
    clock.seconds += 30;
    progress.end();
    progress.begin();
    clock.seconds += 150; // half of the step, three times slower than estimated as well
    progress.repetition(1, 2);
    assert.deepStrictEqual(writes.slice(1), [
      '[2/2] second — about 5 min left\n',
      '[2/2] second, repetition 2 of 2 — about 3 min left\n',
    ]);
  });
});

describe('the progress of a benchmark on a terminal', () => {
  it('the line is rewritten with every repetition and cleared at the end', () => {
    const { writes, progress } = stage([{ title: 'long', seconds: 60 }], { isTTY: true, columns: 80 });
    progress.begin();
    progress.repetition(0, 2);
    progress.repetition(1, 2);
    progress.end();
    assert.deepStrictEqual(writes, [
      '\r\x1b[K[1/1] long — about 60 s left',
      '\r\x1b[K[1/1] long, repetition 1 of 2 — about 60 s left',
      '\r\x1b[K[1/1] long, repetition 2 of 2 — about 30 s left',
      '\r\x1b[K',
    ]);
  });

  it('a title too long for the line is cut, the time left is not', () => {
    const { writes, progress } = stage([{ title: 'x'.repeat(200), seconds: 60 }], {
      isTTY: true,
      columns: 60,
    });
    progress.begin();
    progress.repetition(0, 2);
    const line = writes.at(-1).replace('\r\x1b[K', '');
    assert.strictEqual(line.length, 59);
    assert.match(line, /^\[1\/1\] x+, repetition 1 of 2 — about 60 s left$/);
  });
});

describe('node benchmarks/phases/run.js', () => {
  it('the first line names the first step and the time left', { timeout: 300_000 }, async () => {
    const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-progress-'));
    const child = spawn(process.execPath, [PHASES], { env: { ...process.env, TMPDIR: temporary } });
    const exited = once(child, 'exit');
    try {
      let said = '';
      for await (const text of child.stderr.setEncoding('utf8')) {
        said += text;
        if (said.includes('\n')) break;
      }
      assert.match(said, /^\[1\/\d+\] integers, 10 % changed — about \d+ s left\n/);
    } finally {
      child.kill('SIGKILL');
      await exited;
      fs.rmSync(temporary, { recursive: true });
    }
  });
});
