'use strict';

// The rules and configurations of docs/scaling.md.

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');
const { missingPrograms } = require('../fixtures/prometheus-server');

const ROOT = path.join(__dirname, '../..');
const TEXT = fs.readFileSync(path.join(ROOT, 'docs/scaling.md'), 'utf8');
const BLOCKS = Array.from(TEXT.matchAll(/^```yaml\n([^]*?)^```$/gm), ([, block]) => block);

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['promtool']);

describe('docs/scaling.md', () => {
  it('the recording rules are those of example/kubernetes', () => {
    const file = fs.readFileSync(path.join(ROOT, 'example/kubernetes/rules.yml'), 'utf8');
    const [recording] = file.split(/^ {2}- name: shop-alerts$/m);
    assert.strictEqual(BLOCKS[0].trim(), recording.replace(/^#.*\n/, '').trim());
  });

  it('promtool accepts the rules and configurations', { skip }, t => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'scaling-'));
    t.after(() => fs.rmSync(directory, { recursive: true }));
    assert.strictEqual(BLOCKS.length, 3);
    for (const [i, block] of BLOCKS.entries()) {
      const file = path.join(directory, `${i}.yml`);
      fs.writeFileSync(file, block);
      execFileSync('promtool', ['check', block.startsWith('groups:') ? 'rules' : 'config', file]);
    }
  });
});
