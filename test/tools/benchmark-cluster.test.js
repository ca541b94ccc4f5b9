'use strict';

// The benchmark of clusters: a broken budget fails, and wrong options are refused.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { judge } = require('../../benchmarks/cluster/budgets.js');
const { planFor } = require('../../benchmarks/cluster/plan.js');

const RUN = path.join(__dirname, '../../benchmarks/cluster/run.js');

test('the budget for each of 64 workers is a gate, and is judged with 64 only', () => {
  const verdictsOf = (workers, cpu) => {
    const [each] = planFor({ short: false, latency: true, workers }).slice(-1);
    return judge(each, [{ client: 'ours', path: 'bytes', runs: [{ primaryMain: cpu }] }]);
  };
  const summary = ({ value, holds, gate }) => [value, holds, gate.holds];
  assert.deepEqual(verdictsOf(64, 0.14 * 64).map(summary), [[0.14, true, true]]);
  assert.deepEqual(verdictsOf(64, 0.16 * 64).map(summary), [[0.16, false, false]]);
  assert.deepEqual(verdictsOf(32, 1), []);
});

test(
  'options that exclude each other are errors',
  { skip: process.platform !== 'linux' && 'reads /proc' },
  () => {
    const wrong = [
      [['--growth', '--short'], /--growth and --short exclude each other/],
      [['--growth', '--no-growth'], /--growth and --no-growth exclude each other/],
      [['--document', '--no-growth'], /--document draws the growth, which these options leave out/],
      [['--document', '--samples', '1000'], /--document draws the growth, which these options leave out/],
    ];
    for (const [args, text] of wrong) {
      const { status, stderr } = spawnSync(process.execPath, [RUN, ...args], { encoding: 'utf8' });
      assert.match(stderr, text);
      assert.equal(status, 2);
    }
  },
);
