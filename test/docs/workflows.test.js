'use strict';

// The workflows of GitHub Actions, of which none has run here: .github/workflows/, and the one in
// docs/internals/releasing.md. actionlint checks keys, expressions, and the names of runners and of actions'
// inputs.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');

const ROOT = path.join(__dirname, '../..');
const CI = path.join(ROOT, '.github/workflows/ci.yml');

const isInstalled = spawnSync('actionlint', ['-version']).status === 0;

/** @param {string} file */
function lint(file) {
  const { status, stdout, stderr } = spawnSync('actionlint', ['-no-color', file], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
}

describe('workflows of GitHub Actions', () => {
  const skip = !isInstalled && 'actionlint is missing';

  it('actionlint accepts .github/workflows/ci.yml', { skip }, () => lint(CI));

  it('actionlint accepts the workflow in docs/internals/releasing.md', { skip }, t => {
    const text = fs.readFileSync(path.join(ROOT, 'docs/internals/releasing.md'), 'utf8');
    const [[, workflow], ...others] = text.matchAll(/^```yaml\n(.*?)^```$/gms);
    assert.equal(others.length, 0);
    const place = fs.mkdtempSync(path.join(os.tmpdir(), 'workflows-test-'));
    t.after(() => fs.rmSync(place, { recursive: true }));
    fs.writeFileSync(path.join(place, 'release.yml'), workflow);
    lint(path.join(place, 'release.yml'));
  });

  it('ci.yml runs the versions of Node.js that the tests of versions run, from the oldest of package.json', () => {
    const versionsIn = (file, pattern) => pattern.exec(fs.readFileSync(file, 'utf8'))[1];
    const versions = versionsIn(CI, /node: \[([\d, ]+)\]/);
    assert.equal(
      versions,
      versionsIn(path.join(ROOT, 'test/long/node-versions.test.js'), /VERSIONS = \[([\d, ]+)\]/),
    );
    assert.equal(`>=${versions.split(',')[0]}`, require('../../package.json').engines.node);
    assert.match(
      fs.readFileSync(path.join(ROOT, '.ci/run'), 'utf8'),
      new RegExp(`^newest=${versions.split(', ').at(-1)}$`, 'm'),
    );
  });
});
