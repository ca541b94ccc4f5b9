'use strict';

// The benchmark of clusters: a broken budget fails.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { judge } = require('../../benchmarks/cluster/budgets.js');
const { planFor } = require('../../benchmarks/cluster/plan.js');

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
