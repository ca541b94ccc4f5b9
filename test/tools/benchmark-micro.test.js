'use strict';

// The micro benchmarks: each case has its figures, timing measures what it names, and a broken floor fails.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const { BUDGETS, budgetOfGate, gateOf, judge } = require('../../benchmarks/micro/budgets');
const { caseOf, subjectNames, subjectNamed } = require('../../benchmarks/micro/plan');
const { measureInProcess } = require('../../benchmarks/micro/processes');
const { nanosecondsPerOperation } = require('../../benchmarks/micro/timing');
const { OURS, REFERENCE } = require('../../benchmarks/shared/clients');
const { floorsOf, isHeld } = require('../../benchmarks/shared/floors');

const SECONDS = 0.01;

describe('a subject of the micro benchmarks', () => {
  for (const name of subjectNames()) {
    it(`${name} has all its figures, measured in a process of its own`, { timeout: 300_000 }, async () => {
      const [{ key, figures: units }] = subjectNamed(name).cases;
      const { figures, error } = await measureInProcess({
        id: `${name}/${key}`,
        client: OURS,
        seconds: SECONDS,
      });
      assert.strictEqual(error, undefined);
      assert.deepStrictEqual(Object.keys(figures), Object.keys(units));
      for (const value of Object.values(figures)) assert.ok(value > 0, `${value}`);
    });
  }
});

describe('timing', () => {
  it('a library that did not record every operation is an error', async () => {
    let recorded = 0;
    const run = () => (recorded += 2);
    const honest = { operations: 2, run, recorded: () => recorded };
    assert.ok((await nanosecondsPerOperation(honest, SECONDS)) > 0);
    const lossy = { ...honest, operations: 3 };
    await assert.rejects(nanosecondsPerOperation(lossy, SECONDS), /were timed, the library recorded/);
  });
});

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
