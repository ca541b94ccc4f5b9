'use strict';

// The micro benchmarks: each case has its figures, timing measures what it names, and a broken floor fails.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const { BUDGETS, budgetOfGate, gateOf, judge, ratioOf } = require('../../benchmarks/micro/budgets');
const { caseOf, planFor, subjectNames, subjectNamed } = require('../../benchmarks/micro/plan');
const { measureInProcess } = require('../../benchmarks/micro/processes');
const { millisecondsPerCall, nanosecondsPerOperation } = require('../../benchmarks/micro/timing');
const { OURS, REFERENCE } = require('../../benchmarks/shared/clients');
const { floorOf, floorsOf, isHeld, measureUntilHeld } = require('../../benchmarks/shared/floors');

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

  it('a case that cannot be measured has an error as its answer', async () => {
    const answer = await measureInProcess({ id: 'inc/no-such-case', client: OURS, seconds: SECONDS });
    assert.deepStrictEqual(answer, { error: 'the process ended without an answer' });
  });
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

  /** The figures of a call, by a clock that stands still unless the call advances it. */
  async function figuresOf(call) {
    const clock = { time: 0, wait: 0, now: () => clock.time, processorWait: () => clock.wait };
    return millisecondsPerCall(() => call(clock), { seconds: 0, clock });
  }

  it('a synchronous call holds the event loop for its whole duration', async () => {
    const figures = await figuresOf(clock => void (clock.time += 20));
    assert.deepStrictEqual(figures, { wall: 20, gap: 20 });
  });

  it('a call in slices holds the event loop for its longest slice', async () => {
    const figures = await figuresOf(async clock => {
      for (const slice of [2, 3, 2]) {
        clock.time += slice;
        await new Promise(resolve => setImmediate(resolve));
      }
    });
    assert.deepStrictEqual(figures, { wall: 7, gap: 3 });
  });

  it('time in which the thread waits for a processor does not count as holding the event loop', async () => {
    const figures = await figuresOf(clock => {
      clock.time += 20;
      clock.wait += 15;
    });
    assert.deepStrictEqual(figures, { wall: 20, gap: 5 });
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

  it('a short run measures what the floors need and nothing else', () => {
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

  it('floors of durations take the shortest of all processes', () => {
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
  it('ratios use the repetitions in which both clients were measured', () => {
    const runs = {
      [OURS]: [{ time: 1 }, null, { time: 10 }, { time: 2 }],
      [REFERENCE]: [{ time: 3 }, { time: 1 }, { time: 50 }, null],
    };
    assert.strictEqual(ratioOf({ runs }, 'time', REFERENCE), 4);
    assert.strictEqual(ratioOf({ runs }, 'time', 'prometheus-io'), null);
  });
});

describe('measureUntilHeld()', () => {
  /** How often it measures, if the floors are held from this attempt on. */
  async function attemptsUntil(held) {
    let attempts = 0;
    const last = await measureUntilHeld(
      async () => ++attempts,
      attempt => attempt >= held,
    );
    assert.strictEqual(last, attempts);
    return attempts;
  }

  it('a figure below its floor is measured again, three times in all', async () => {
    assert.deepStrictEqual(await Promise.all([1, 2, 3, 4].map(attemptsUntil)), [1, 2, 3, 3]);
  });
});
