'use strict';

// The property tests with a fresh seed and many more runs. The seed is printed; PROPERTY_SEED=<seed> repeats
// it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const ROOT = path.join(__dirname, '../..');
const EFFORT = 20;

const seed = process.env.PROPERTY_SEED ?? String(Math.floor(Math.random() * 2 ** 31));

const files = fs
  .readdirSync(path.join(ROOT, 'test'), { recursive: true })
  .map(name => path.join(ROOT, 'test', String(name)))
  .filter(file => file.endsWith('.test.js') && file !== __filename)
  .filter(file => fs.readFileSync(file, 'utf8').includes('seeded-fast-check'));

describe(`property tests with PROPERTY_SEED=${seed}`, () => {
  assert.ok(files.length > 10, `${files}`);
  for (const file of files) {
    const name = path.relative(ROOT, file);
    it(`${name} holds in ${EFFORT} times as many runs`, t => {
      t.diagnostic(`PROPERTY_SEED=${seed}`);
      const env = {
        ...process.env,
        PROPERTY_SEED: seed,
        PROPERTY_EFFORT: String(EFFORT),
        NODE_TEST_CONTEXT: undefined,
      };
      const { status, stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', file], {
        env,
        encoding: 'utf8',
        maxBuffer: 2 ** 28,
      });
      assert.equal(status, 0, `PROPERTY_SEED=${seed} PROPERTY_EFFORT=${EFFORT}\n${stdout}`);
    });
  }
});
