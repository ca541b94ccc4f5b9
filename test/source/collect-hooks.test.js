'use strict';

const assert = require('node:assert/strict');
const { after, before, describe, it, mock } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const { CollectHooks } = require('../../lib/source/collect-hooks');

const PATIENT = 600_000;
/** Over after a turn or two of the loop. */
const IMPATIENT = 1;

/** A metric whose hook ends when a test says so. */
function heldMetric(name = 'held') {
  /** @type {{end: () => void, fail: (error: Error) => void}[]} */
  const runs = [];
  const collect = () => new Promise((resolve, reject) => runs.push({ end: resolve, fail: reject }));
  return { name, collect, runs };
}

/** A call whose failures and end can be read. */
function callOf(hooks, metric, timeout) {
  const call = { failures: [], isEnded: false, ended: Promise.resolve() };
  const onFailure = (name, reason) => call.failures.push(`${name}: ${reason?.message ?? reason}`);
  const running = hooks.run([metric].flat(), timeout, onFailure);
  call.ended = Promise.resolve(running).then(() => void (call.isEnded = true));
  return call;
}

describe('collect hooks of calls that overlap', () => {
  // The timers of calls do not keep the process alive.
  let timer;
  before(() => (timer = setInterval(() => {}, PATIENT)));
  after(() => clearInterval(timer));

  it('a patient call waits for the hook that an impatient one has given up, and then for a run of its own', async () => {
    const hooks = new CollectHooks();
    const metric = heldMetric();
    const impatient = callOf(hooks, metric, IMPATIENT);
    await impatient.ended;
    assert.deepEqual(impatient.failures, ['held: its collect took longer than 1 ms']);
    const patient = callOf(hooks, metric, PATIENT);
    metric.runs[0].end();
    await turn();
    assert.deepEqual([metric.runs.length, patient.isEnded], [2, false]);
    metric.runs[1].end();
    await patient.ended;
    assert.deepEqual([impatient.failures.length, patient.failures], [1, []]);
  });

  it("a hook is awaited where Promise.all() takes arrays only, as that of zone.js in Angular's servers", async t => {
    const all = Promise.all.bind(Promise);
    mock.method(Promise, 'all', promises =>
      all(Array.from({ length: promises.length }, (_, i) => promises[i])),
    );
    t.after(() => mock.restoreAll());
    const metric = heldMetric();
    const call = callOf(new CollectHooks(), metric, PATIENT);
    await turn();
    assert.equal(call.isEnded, false);
    metric.runs[0].end();
    await call.ended;
    assert.deepEqual(call.failures, []);
  });

  it('all calls that wait share the run after the one that is running, whether that fails or not', async () => {
    for (const end of ['end', 'fail']) {
      const hooks = new CollectHooks();
      const metric = heldMetric();
      const first = callOf(hooks, metric, PATIENT);
      const others = [1, 2, 3].map(() => callOf(hooks, metric, PATIENT));
      metric.runs[0][end](new Error('of the first'));
      await first.ended;
      await turn();
      assert.deepEqual([metric.runs.length, others.map(call => call.isEnded)], [2, [false, false, false]]);
      // It has begun before this call.
      const later = callOf(hooks, metric, PATIENT);
      metric.runs[1].fail(new Error('of the second'));
      await Promise.all(others.map(call => call.ended));
      metric.runs[2].end();
      await later.ended;
      assert.deepEqual(first.failures, end === 'fail' ? ['held: of the first'] : []);
      const shown = others.map(call => call.failures);
      assert.deepEqual(shown, Array(3).fill(['held: of the second']));
      assert.deepEqual([later.failures, metric.runs.length], [[], 3]);
    }
  });

  it('a hook that hangs is waited for once, by a call with more time again, and by all when it has ended', async () => {
    const hooks = new CollectHooks();
    const metric = heldMetric();
    await callOf(hooks, metric, IMPATIENT).ended;
    const same = callOf(hooks, metric, IMPATIENT);
    assert.deepEqual(same.failures, ['held: its previous collect is still running']);
    const longer = callOf(hooks, metric, 3);
    await longer.ended;
    assert.deepEqual(longer.failures, ['held: its collect took longer than 3 ms']);
    assert.equal(callOf(hooks, metric, 4).failures.length, 1);
    metric.runs[0].end();
    await turn();
    assert.equal(metric.runs.length, 1, 'nobody waits for another run');
    const next = callOf(hooks, metric, PATIENT);
    metric.runs[1].end();
    await next.ended;
    assert.deepEqual(next.failures, []);
  });

  it('a hook that is still running delays no hook of another metric', async () => {
    const hooks = new CollectHooks();
    const [slow, other] = [heldMetric('slow'), heldMetric('other')];
    await callOf(hooks, slow, IMPATIENT).ended;
    const call = callOf(hooks, [slow, other], PATIENT);
    assert.equal(other.runs.length, 1);
    other.runs[0].end();
    slow.runs[0].end();
    await turn();
    slow.runs[1].end();
    await call.ended;
    assert.deepEqual(call.failures, []);
  });

  it('a hook that returns nothing, throws or has no promise the second time is called once for each call', async () => {
    const hooks = new CollectHooks();
    let isOver = false;
    const release = [];
    const metric = {
      name: 'cached',
      collect() {
        if (isOver) throw new Error('it throws');
        return new Promise(resolve => release.push(resolve));
      },
    };
    await callOf(hooks, metric, IMPATIENT).ended;
    const call = callOf(hooks, metric, PATIENT);
    isOver = true;
    release[0]();
    await call.ended;
    assert.deepEqual(call.failures, ['cached: it throws']);
    isOver = false;
    const next = callOf(hooks, metric, PATIENT);
    release[1]();
    await next.ended;
    assert.deepEqual(next.failures, []);
  });
});
