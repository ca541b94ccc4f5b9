'use strict';

// Tests of clusters in all their variants: aggregated in place, other forms of messages. `npm test` runs one
// of each.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const ROOT = path.join(__dirname, '../..');

const files = fs
  .readdirSync(path.join(ROOT, 'test'), { recursive: true })
  .map(name => path.join(ROOT, 'test', String(name)))
  .filter(file => file.endsWith('.test.js') && file !== __filename)
  .filter(file => fs.readFileSync(file, 'utf8').includes('process.env.EVERY_VARIANT'));

describe('tests with EVERY_VARIANT=1', () => {
  assert.ok(files.length > 1, `${files}`);
  for (const file of files) {
    const name = path.relative(ROOT, file);
    it(`${name} holds in every variant`, () => {
      const { status, stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', file], {
        env: { ...process.env, EVERY_VARIANT: '1', NODE_TEST_CONTEXT: undefined },
        encoding: 'utf8',
        maxBuffer: 2 ** 28,
      });
      assert.equal(status, 0, stdout);
    });
  }
});
