'use strict';

// The micro benchmarks themselves: that what is timed is what happens, and that a floor that is not held fails.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const { BUDGETS, budgetOfGate, gateOf, judge, ratioOf } = require('../../benchmarks/micro/budgets');
const { caseOf, planFor, subjectNames, subjectNamed } = require('../../benchmarks/micro/plan');
const { measureInProcess } = require('../../benchmarks/micro/processes');
const { millisecondsPerCall, nanosecondsPerOperation } = require('../../benchmarks/micro/timing');
const { OURS, REFERENCE } = require('../../benchmarks/shared/clients');
const { floorOf, floorsOf, isHeld } = require('../../benchmarks/shared/floors');

const SECONDS = 0.01;

describe('a subject of the micro benchmarks', () => {
  for (const name of subjectNames()) {
    it(
      `${name} is measured in a process of its own, and has all its figures`,
      { timeout: 60_000 },
      async () => {
        const [{ key, figures: units }] = subjectNamed(name).cases;
        const { figures, error } = await measureInProcess({
          id: `${name}/${key}`,
          client: OURS,
          seconds: SECONDS,
        });
        assert.strictEqual(error, undefined);
        assert.deepStrictEqual(Object.keys(figures), Object.keys(units));
        for (const value of Object.values(figures)) assert.ok(value > 0, `${value}`);
      },
    );
  }

  it('that cannot be measured says why, and fails nobody', async () => {
    const answer = await measureInProcess({ id: 'inc/no-such-case', client: OURS, seconds: SECONDS });
    assert.deepStrictEqual(answer, { error: 'the process ended without an answer' });
  });
});

describe('timing', () => {
  it('refuses operations of which not all were recorded', async () => {
    let recorded = 0;
    const run = () => (recorded += 2);
    const honest = { operations: 2, run, recorded: () => recorded };
    assert.ok((await nanosecondsPerOperation(honest, SECONDS)) > 0);
    const lossy = { ...honest, operations: 3 };
    await assert.rejects(nanosecondsPerOperation(lossy, SECONDS), /were timed, the library recorded/);
  });

  it('sees a call hold the event loop, and one that yields not hold it', async () => {
    const hold = milliseconds => {
      const until = performance.now() + milliseconds;
      while (performance.now() < until);
    };
    const yielding = async () => {
      for (let slice = 0; slice < 10; slice++) {
        hold(2);
        await new Promise(resolve => setImmediate(resolve));
      }
    };
    const held = await millisecondsPerCall(() => hold(20), { seconds: 0 });
    const sliced = await millisecondsPerCall(yielding, { seconds: 0 });
    assert.ok(held.wall >= 20 && held.gap >= 20, JSON.stringify(held));
    assert.ok(sliced.wall >= 20 && sliced.gap >= 2, JSON.stringify(sliced));
    assert.ok(sliced.gap < sliced.wall, JSON.stringify(sliced));
  });
});

describe('floors of the micro benchmarks', () => {
  it('belong to a budget each, of a case and a figure that there are', () => {
    for (const { gate } of floorsOf('micro')) {
      const { id, figure } = budgetOfGate(gate);
      assert.ok(figure in caseOf(id).figures, gate);
    }
    for (const { id, figure } of BUDGETS) assert.ok(figure in caseOf(id).figures, `${id} ${figure}`);
  });

  it('are all judged by a short run, which measures nothing else', () => {
    const steps = planFor({ short: true });
    const measured = new Map(steps.map(({ id, clients }) => [id, clients]));
    const needed = new Set(floorsOf('micro').map(({ gate }) => budgetOfGate(gate).id));
    assert.deepStrictEqual(new Set(measured.keys()), needed);
    for (const { gate } of floorsOf('micro')) {
      const { id, against = OURS } = budgetOfGate(gate);
      assert.ok(measured.get(id).includes(against) && measured.get(id).includes(OURS), gate);
    }
  });

  const [ratioFloor] = floorsOf('micro').filter(({ atLeast }) => atLeast !== undefined);

  /** What judge() says of a run in which a rival needs so many times as much as ours. */
  function verdictOf(ratio) {
    const { id, figure, against } = budgetOfGate(ratioFloor.gate);
    const runs = {
      [OURS]: [{ [figure]: 2 }, { [figure]: 200 }],
      [against]: [{ [figure]: 2 * ratio }, { [figure]: 200 * ratio }],
    };
    const verdicts = judge({ id, title: '', figures: {}, runs, errors: {} });
    return verdicts.find(({ budget }) => gateOf(budget) === ratioFloor.gate);
  }

  it('are held by a ratio at the floor, and not by one below it', () => {
    assert.strictEqual(verdictOf(ratioFloor.atLeast).gate.holds, true);
    assert.strictEqual(verdictOf(ratioFloor.atLeast * 0.99).gate.holds, false);
  });

  it('are not held by what was not measured', () => {
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

  it('of lengths take the shortest of all processes', () => {
    const gate = 'new-series/1m longest';
    const { atMost } = floorOf('micro', gate);
    const runs = { [OURS]: [{ longest: atMost * 9 }, { longest: atMost }, { longest: atMost * 8 }] };
    const verdicts = judge({ id: 'new-series/1m', title: '', figures: {}, runs, errors: {} });
    const verdict = verdicts.find(({ budget }) => budget.atMost !== undefined);
    assert.deepStrictEqual(verdict.gate, { floor: floorOf('micro', gate), value: atMost, holds: true });
    assert.strictEqual(verdict.holds, false);
  });
});

describe('ratios', () => {
  it('are those of repetitions in which both were measured', () => {
    const runs = {
      [OURS]: [{ time: 1 }, null, { time: 10 }, { time: 2 }],
      [REFERENCE]: [{ time: 3 }, { time: 1 }, { time: 50 }, null],
    };
    assert.strictEqual(ratioOf({ runs }, 'time', REFERENCE), 4);
    assert.strictEqual(ratioOf({ runs }, 'time', 'prometheus-io'), null);
  });
});
