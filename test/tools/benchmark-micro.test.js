'use strict';

// The micro benchmarks: a broken floor fails.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const { BUDGETS, budgetOfGate, gateOf, judge } = require('../../benchmarks/micro/budgets');
const { caseOf } = require('../../benchmarks/micro/plan');
const { OURS, REFERENCE } = require('../../benchmarks/shared/clients');
const { floorsOf, isHeld } = require('../../benchmarks/shared/floors');

describe('floors of the micro benchmarks', () => {
  it('every floor has a budget of an existing case and figure', () => {
    for (const { gate } of floorsOf('micro')) {
      const { id, figure } = budgetOfGate(gate);
      assert.ok(figure in caseOf(id).figures, gate);
    }
    for (const { id, figure } of BUDGETS) assert.ok(figure in caseOf(id).figures, `${id} ${figure}`);
  });

  const [ratioFloor] = floorsOf('micro').filter(({ atLeast }) => atLeast !== undefined);

  /** The verdict on a run in which another client needs `ratio` times as long as ours. */
  function verdictOf(ratio) {
    const { id, figure, against } = budgetOfGate(ratioFloor.gate);
    const runs = {
      [OURS]: [{ [figure]: 2 }, { [figure]: 200 }],
      [against]: [{ [figure]: 2 * ratio }, { [figure]: 200 * ratio }],
    };
    const verdicts = judge({ id, title: '', figures: {}, runs, errors: {} });
    return verdicts.find(({ budget }) => gateOf(budget) === ratioFloor.gate);
  }

  it('a ratio at the floor passes, and one below it fails', () => {
    assert.strictEqual(verdictOf(ratioFloor.atLeast).gate.holds, true);
    assert.strictEqual(verdictOf(ratioFloor.atLeast * 0.99).gate.holds, false);
  });

  it('a figure that was not measured fails', () => {
    const { id } = budgetOfGate(ratioFloor.gate);
    const unmeasured = {
      id,
      title: '',
      figures: {},
      runs: { [OURS]: [null], [REFERENCE]: [null] },
      errors: {},
    };
    for (const { gate } of judge(unmeasured)) {
      if (gate) assert.strictEqual(gate.holds, false);
    }
    assert.strictEqual(isHeld({ gate: '', atMost: 1 }, null), false);
    assert.strictEqual(isHeld({ gate: '', atMost: 1 }, NaN), false);
  });
});
