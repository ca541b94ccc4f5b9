'use strict';

// Tests again that `npm test` runs in one way: tests of clusters in all their variants (aggregated in place,
// other forms of messages), property tests with a fresh seed and many more runs. The seed is printed;
// PROPERTY_SEED=<seed> repeats it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const ROOT = path.join(__dirname, '../..');
const EFFORT = '20';

const seed = process.env.PROPERTY_SEED ?? String(Math.floor(Math.random() * 2 ** 31));

const AGAIN = {
  'in every variant': { which: 'process.env.EVERY_VARIANT', least: 2, env: { EVERY_VARIANT: '1' } },
  [`with ${EFFORT} times as many runs`]: {
    ...{ which: 'seeded-fast-check', least: 11 },
    env: { PROPERTY_SEED: seed, PROPERTY_EFFORT: EFFORT },
  },
};

for (const [how, { which, least, env }] of Object.entries(AGAIN)) {
  const files = fs
    .readdirSync(path.join(ROOT, 'test'), { recursive: true })
    .map(name => path.join(ROOT, 'test', String(name)))
    .filter(file => file.endsWith('.test.js') && !file.includes('node_modules') && file !== __filename)
    .filter(file => fs.readFileSync(file, 'utf8').includes(which));

  describe(`tests ${how}, ${JSON.stringify(env)}`, () => {
    assert.ok(files.length >= least, `${files}`);
    for (const file of files) {
      const name = path.relative(ROOT, file);
      it(`${name} holds ${how}`, () => {
        const { status, stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', file], {
          env: { ...process.env, ...env, NODE_TEST_CONTEXT: undefined },
          encoding: 'utf8',
          maxBuffer: 2 ** 28,
        });
        assert.equal(status, 0, `${JSON.stringify(env)}\n${stdout}`);
      });
    }
  });
}
