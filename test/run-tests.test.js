'use strict';

// scripts/run-tests.js itself: whatever is wrong with a test file has to fail the run, and be named at its
// end.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');

const RUNNER = path.join(__dirname, '../scripts/run-tests.js');
const IT = "const { describe, it } = require('node:test');\n";

const FILES = {
  'passes.test.js': `${IT}it('adds up', () => {});`,
  'nested/passes.test.js': `${IT}describe('sums', () => { it('add up', () => {}); it('wait', { skip: 'later' }); });
    describe('differences', { skip: 'no Linux' }, () => { it('are right', () => {}); });`,
  'todo.test.js': `${IT}it('is not done yet', { todo: true }, () => { throw new Error('not yet'); });`,
  'fails.test.js': `${IT}describe('sums', () => { it('go wrong', () => { throw new Error('one off'); }); });`,
  'empty.test.js': '',
  'throws.test.js': "throw new Error('at once');",
  'exits.test.js': `${IT}it('adds up', () => {}); process.once('beforeExit', () => process.exit(3));`,
  'hangs.test.js': 'setInterval(() => {}, 1000);',
  'first.alone.test.js': `${IT}it('runs alone', () => {}); require('node:fs').appendFileSync(process.env.ORDER, 'alone ');`,
  'environment.test.js': `${IT}it('parses no certificates', () => { if ('NODE_EXTRA_CA_CERTS' in process.env) throw new Error('slow'); });`,
  'second.test.js': `${IT}it('runs first', () => {}); require('node:fs').appendFileSync(process.env.ORDER, 'others ');`,
};

/** @type {string} */
let folder;

before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'run-tests-test-'));
  fs.mkdirSync(path.join(folder, 'nested'));
  for (const [name, code] of Object.entries(FILES)) fs.writeFileSync(path.join(folder, name), code);
});
after(() => fs.rmSync(folder, { recursive: true }));

/** Runs files of the folder, or all of it. */
function runTests(names, env = {}) {
  const files = names.map(name => path.join(folder, name));
  // This process reports to a runner itself; the one that it starts does not.
  const inherited = { ...process.env, NODE_TEST_CONTEXT: undefined };
  const { status, stdout } = spawnSync(process.execPath, [RUNNER, ...files], {
    env: { ...inherited, ORDER: path.join(folder, 'order'), ...env },
    encoding: 'utf8',
  });
  const counts = Object.fromEntries(
    Array.from(stdout.matchAll(/^ℹ (\w+) (\d+)$/gm), ([, name, n]) => [name, Number(n)]),
  );
  const [, failed = ''] = stdout.split('\nfailed:\n');
  return { status, stdout, counts, failed };
}

describe('scripts/run-tests.js', () => {
  it('scripts/run-tests.js exits with 0 if every test passes, is skipped or is still to do; prints each count once, and what was skipped', () => {
    const names = ['passes', 'todo', 'first.alone', 'environment', 'second'].map(name => `${name}.test.js`);
    const { status, counts, stdout } = runTests(['nested', ...names], { NODE_EXTRA_CA_CERTS: __filename });
    assert.equal(status, 0, stdout);
    const { duration_ms: duration, ...rest } = counts;
    assert.deepEqual(rest, { tests: 7, suites: 2, pass: 5, fail: 0, cancelled: 0, skipped: 1, todo: 1 });
    assert.ok(duration > 0);
    assert.equal(stdout.match(/^ℹ tests /gm).length, 1);
    assert.match(
      stdout,
      /ℹ tests 7\n(ℹ .*\n)+\nskipped:\n﹣ .*passes\.test\.js:2 wait: later\n﹣ .*:3 differences: no Linux\n$/,
    );
    const order = fs.readFileSync(path.join(folder, 'order'), 'utf8');
    assert.equal(order, 'others alone ', '*.alone.test.js runs after all other files');
  });

  it('scripts/run-tests.js exits with 1 and names each file that fails, throws or exits, or contains no test', () => {
    const names = ['fails', 'empty', 'throws', 'exits', 'passes'];
    const { status, counts, failed } = runTests(names.map(name => `${name}.test.js`));
    assert.equal(status, 1);
    assert.equal(counts.fail + counts.cancelled, 4);
    assert.match(failed, /^✖ .*fails\.test\.js:2 go wrong$/m);
    assert.match(failed, /^✖ .*empty\.test\.js contains no test$/m);
    assert.match(failed, /^✖ .*throws\.test\.js failed as a whole$/m);
    assert.match(failed, /^✖ .*exits\.test\.js failed as a whole$/m);
    assert.equal(failed.match(/^✖ /gm).length, 4);
  });

  it('a file that hangs is ended after TEST_FILE_SECONDS, fails the run and is named', () => {
    const { status, counts, failed } = runTests(['hangs.test.js'], { TEST_FILE_SECONDS: '1' });
    assert.equal(status, 1);
    assert.equal(counts.fail + counts.cancelled, 1);
    assert.match(failed, /^✖ .*hangs\.test\.js (took too long|failed as a whole)$/m);
    assert.equal(failed.match(/^✖ /gm).length, 1);
  });

  it('scripts/run-tests.js fails if a named file is missing', () => {
    assert.notEqual(runTests(['missing.test.js']).status, 0);
  });
});
