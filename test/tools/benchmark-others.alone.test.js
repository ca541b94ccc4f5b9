'use strict';

// Short runs of the benchmarks that CI does not run: the cost of default metrics, and the phases of a scrape.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { it } = require('node:test');
const { LANES } = require('../../benchmarks/runtime-overhead/lanes');
const { measureOverhead } = require('../../benchmarks/runtime-overhead/measurement');
const { reportOf } = require('../../benchmarks/runtime-overhead/report');

const PHASES = path.join(__dirname, '../../benchmarks/phases/run.js');

const skip = process.platform !== 'linux' && 'reads /proc';
it('the overhead benchmark measures each lane in each block, and reports no NaN', { skip }, async () => {
  const progress = { begin() {}, repetition() {}, end() {} };
  const [cluster] = await measureOverhead({ clusters: 1, seconds: 0.2, progress });
  for (const kind of ['fixed', 'saturated', 'idle', 'resting']) {
    const lanes = {};
    for (const { block, lane } of cluster[kind]) (lanes[block] ??= []).push(lane);
    const expected = LANES.map(({ key }) => key).sort();
    for (const ofBlock of Object.values(lanes)) assert.deepStrictEqual(ofBlock.sort(), expected, kind);
    const isLoaded = kind === 'fixed' || kind === 'saturated';
    for (const { answered } of cluster[kind]) assert.strictEqual(answered > 0, isLoaded, kind);
  }
  const report = reportOf([cluster]);
  for (const { title } of LANES) assert.ok(report.includes(`| ${title} `), title);
  assert.doesNotMatch(report, /NaN|undefined|Infinity/);
});

it('the benchmark of phases names its first step and the time left', { timeout: 300_000 }, async t => {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-progress-'));
  const child = spawn(process.execPath, [PHASES], { env: { ...process.env, TMPDIR: temporary } });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
    fs.rmSync(temporary, { recursive: true });
  });
  let said = '';
  for await (const text of child.stderr.setEncoding('utf8')) {
    said += text;
    if (said.includes('\n')) break;
  }
  assert.match(said, /^\[1\/\d+\] integers, 10 % changed — about \d+ s left\n/);
});
