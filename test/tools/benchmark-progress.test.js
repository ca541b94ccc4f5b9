'use strict';

// What a benchmark says while it runs: what it measures, and how much is left, on a terminal and in a log.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');
const { Progress } = require('../../benchmarks/shared/progress');

const PHASES = path.join(__dirname, '../../benchmarks/phases/run.js');

/** A stream that keeps what is written, and a clock that stands still until it is told. */
function stage(steps, terminal = {}) {
  const clock = { seconds: 1000 };
  const writes = [];
  const stream = { ...terminal, write: text => writes.push(text) };
  return { clock, writes, progress: new Progress(steps, stream, () => clock.seconds * 1e3) };
}

describe('the progress of a benchmark in a log', () => {
  it('has a line for each step, in their order, with what is left by the guesses', () => {
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

  it('has a line of a long step when the last one is ten seconds old, and not sooner', () => {
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

  it('scales what is left by how the guesses fared', () => {
    const { writes, progress, clock } = stage([
      { title: 'first', seconds: 10 },
      { title: 'second', seconds: 100 },
    ]);
    progress.begin();
    clock.seconds += 30;
    progress.end();
    progress.begin();
    clock.seconds += 150; // half of it, also three times slower than guessed
    progress.repetition(1, 2);
    assert.deepStrictEqual(writes.slice(1), [
      '[2/2] second — about 5 min left\n',
      '[2/2] second, repetition 2 of 2 — about 3 min left\n',
    ]);
  });
});

describe('the progress of a benchmark on a terminal', () => {
  it('rewrites its line with every repetition, and leaves none behind', () => {
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

  it('cuts a title that would make the line wrap, and not what is left', () => {
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
  it('says from its beginning what it measures and how much is left', { timeout: 60_000 }, async () => {
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
