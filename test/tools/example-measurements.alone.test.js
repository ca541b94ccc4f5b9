'use strict';

// example/concurrency and example/heap-sizing as a person runs them, with real processes. No test expects a
// speed.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, it } = require('node:test');
const { Program } = require('../fixtures/program');

const TIMEOUT = 300_000; // for a program that hangs

// Of their own, because the programs look for what is left in it.
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'example-'));
after(() => fs.rmSync(directory, { recursive: true, force: true }));

const EXAMPLES = {
  concurrency: {
    rows: ['1', '4', '16'],
    advice: /^(Choose a limit of (1|4|16):|Throughput still grew at a limit of 16,) /m,
  },
  'heap-sizing': {
    rows: ['default', '2', '32'],
    advice: /^(Choose --max-semi-space-size=(2|32): it|Leave it as it is: Node's own setting) /m,
  },
};

/** The first cells of the table that was printed. */
function rowsOf(output) {
  const lines = output.split('\n');
  const first = lines.findIndex(line => /^-+$/.test(line)) + 1;
  return lines.slice(first, lines.indexOf('', first)).map(line => line.trim().split(/ {3,}/)[0]);
}

for (const [name, { rows, advice }] of Object.entries(EXAMPLES)) {
  it(
    `example/${name}: the table has a row for each setting, and every request is counted`,
    { timeout: TIMEOUT },
    async () => {
      const file = path.join(__dirname, `../../example/${name}/${name}.js`);
      const program = new Program([file, '--short'], { env: { TMPDIR: directory } });
      // ended() waits for its children as well, because they hold its output.
      assert.strictEqual(await program.ended(), 0, program.output + program.errors);
      const { output } = program;
      assert.deepStrictEqual(rowsOf(output), rows);
      assert.match(output, advice);
      const [, sent] = /^check: (\d+) requests sent, \1 answered, 0 failed; \w+: \1 {3}equal$/m.exec(output);
      assert.ok(Number(sent) > 0);
      assert.match(output, /^nothing left running$/m);
    },
  );
}
