'use strict';

// Which caller gets which text. The cluster is a stand-in that renders when a test says so.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { ScrapeRounds } = require('../../../lib/cluster/primary/scrape-rounds');

const TEXT = { format: 'text', gzip: false, selfMetrics: false };
const OPEN_METRICS = { format: 'openmetrics', gzip: false, selfMetrics: false };

/** A record of one. */
const WORKER = { worker: { id: 1 } };

let cluster;
let rounds;
let renders;
beforeEach(() => {
  renders = [];
  cluster = {
    ready: () => Promise.resolve(),
    losses: () => 0,
    connected: () => [],
    ask: () => 0,
    giveUp() {},
    render: formats => new Promise(resolve => renders.push({ formats, resolve })),
    failure: () => undefined,
  };
  rounds = new ScrapeRounds(cluster);
});
afterEach(() => rounds.close());

/** Of the store, as far as rounds read it. */
const NO_FAILURES = { failures: [] };

/** Lets a render end: each format's text says which one it is. */
async function finishRender(index = 0, again = []) {
  while (renders.length <= index) await new Promise(resolve => setImmediate(resolve));
  const { formats, resolve } = renders[index];
  const bodies = formats.map(format => bodyOf(format.format === 'openmetrics' ? 'OpenMetrics' : 'text'));
  resolve({ again, bodies, isEmpty: false, state: NO_FAILURES });
  return bodies;
}

function bodyOf(text) {
  const { buffer, length } = Buffer.from(new TextEncoder().encode(text).buffer);
  return { buffer, length };
}

it('rounds that are closed reject their callers, and those that come later, and ask nobody', async t => {
  const ask = t.mock.method(cluster, 'ask');
  const early = rounds.collect(TEXT, 5000);
  rounds.close('WorkerRegistry');
  const late = rounds.collect(TEXT, 5000);
  for (const caller of [early, late])
    await assert.rejects(caller, /^Error: The WorkerRegistry was closed\.$/);
  assert.equal(ask.mock.callCount(), 0);
});

it('the callers of a round get the text of their own format, even if a caller with another format has timed out during the writing', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const impatient = rounds.collect(TEXT, 100);
  const patient = rounds.collect(OPEN_METRICS, 60_000);
  while (renders.length === 0) await new Promise(resolve => setImmediate(resolve));
  const leaves = assert.rejects(impatient, {
    message: 'Operation timed out.',
    code: 'PROM_CLIENT_TIMEOUT',
  });
  t.mock.timers.tick(5000);
  await leaves;
  await finishRender();
  assert.equal((await patient).toString(), 'OpenMetrics');
});

it('the file of a page is removed if nobody waits for it any more when it is written', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const discarded = [];
  cluster.discard = file => discarded.push(file);
  const names = ['late', 'in time'];
  const [late, inTime] = names.map((file, i) => rounds.collect({ ...TEXT, file }, [100, 60_000][i]));
  while (renders.length === 0) await new Promise(resolve => setImmediate(resolve));
  const leaves = assert.rejects(late, { message: 'Operation timed out.', code: 'PROM_CLIENT_TIMEOUT' });
  t.mock.timers.tick(5000);
  await leaves;
  renders[0].resolve({ again: [], bodies: names.map(file => ({ file, length: 4 })), state: NO_FAILURES });
  assert.equal((await inTime).file, 'in time');
  assert.deepEqual(discarded, ['late']);
});

it('the file of a page is removed before the page is written again, or if the thread is lost each time', async () => {
  const events = [];
  cluster.discard = file => events.push(`${file} removed`);
  cluster.connected = () => [WORKER];
  let losses = 0;
  cluster.losses = () => losses;
  let attempt = () => {
    losses++;
    return Promise.reject(new Error('the thread is gone'));
  };
  cluster.render = ([{ file }]) => {
    events.push(`${file} written`);
    return attempt(file);
  };
  await assert.rejects(rounds.collect({ ...TEXT, file: 'lost' }, 5000), {
    message: 'Operation timed out.',
    code: 'PROM_CLIENT_TIMEOUT',
  });
  assert.deepEqual(events.splice(0), Array(3).fill(['lost written', 'lost removed']).flat());

  losses = 0;
  attempt = async file => {
    if (losses === 0) losses++;
    return { again: [], bodies: [{ file, length: 4 }], isEmpty: false, state: NO_FAILURES };
  };
  assert.equal((await rounds.collect({ ...TEXT, file: 'repeated' }, 5000)).file, 'repeated');
  assert.deepEqual(events, ['repeated written', 'repeated removed', 'repeated written']);
});

it('an aggregator that was replaced while a round waited: workers are asked again before a page is requested', async () => {
  const asked = [];
  let losses = 0;
  cluster.losses = () => losses;
  cluster.connected = () => [WORKER];
  cluster.ask = worker => {
    asked.push(worker);
    return 60_000;
  };
  const whenAsked = async times => {
    while (asked.length < times && renders.length === 0) await new Promise(resolve => setImmediate(resolve));
  };
  const caller = rounds.collect(TEXT, 60_000);
  await whenAsked(1);
  losses++;
  rounds.settle(WORKER, true);
  await whenAsked(2);
  rounds.settle(WORKER, true);
  await finishRender();
  assert.equal((await caller).toString(), 'text');
  assert.equal(renders.length, 1);
});

describe('a caller whose time is up', () => {
  beforeEach(() => {
    cluster.connected = () => [WORKER];
    cluster.ask = () => 60_000;
  });

  it('callers whose time is up share a page, and others wait for the worker that has not answered', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const gaveUp = t.mock.method(cluster, 'giveUp');
    const impatient = [TEXT, TEXT, OPEN_METRICS].map(format => rounds.collect(format, 100));
    const patient = rounds.collect(TEXT, 60_000);
    t.mock.timers.tick(100);
    await finishRender(0);
    const texts = (await Promise.all(impatient)).map(String);
    assert.deepEqual(texts, ['text', 'text', 'OpenMetrics']);
    assert.deepEqual([renders.length, gaveUp.mock.callCount()], [1, 0]);
    rounds.settle(WORKER, true);
    await finishRender(1);
    assert.equal((await patient).toString(), 'text');
    assert.equal(gaveUp.mock.callCount(), 1);
  });

  it('the file of a page is removed if its caller gets an error, or nothing, instead', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const discarded = [];
    cluster.discard = file => discarded.push(file);
    cluster.render = async ([{ file }]) => {
      const isIncomplete = file === 'incomplete';
      const bodies = [{ file, length: 4 }];
      return { again: [], bodies, isEmpty: !isIncomplete, isIncomplete, state: NO_FAILURES };
    };
    const expired = file => {
      const caller = rounds.collect({ ...TEXT, file }, 100);
      t.mock.timers.tick(100);
      return caller;
    };
    assert.equal(await expired('empty'), undefined);
    cluster.failure = () => new Error('nobody has answered');
    await assert.rejects(expired('failed'), { message: 'nobody has answered' });
    await assert.rejects(expired('incomplete'), {
      message: 'Operation timed out.',
      code: 'PROM_CLIENT_TIMEOUT',
    });
    assert.deepEqual(discarded, ['empty', 'failed', 'incomplete']);
  });

  it('no worker is asked for callers whose time was up before: a request with so little time would spoil the numbers of others', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let start;
    const starts = new Promise(resolve => (start = resolve));
    cluster.ready = () => starts;
    const timeouts = [];
    cluster.ask = (worker, timeout) => timeouts.push(timeout) && 60_000;
    const late = rounds.collect(TEXT, 100);
    await Promise.resolve();
    const inTime = rounds.collect(TEXT, 60_000);
    t.mock.timers.tick(250);
    start();
    await finishRender(0);
    assert.equal((await late).toString(), 'text');
    rounds.settle(WORKER, true);
    await finishRender(1);
    await inTime;
    assert.equal(timeouts.length, 1);
    assert.ok(timeouts[0] > 50_000, `asked with ${timeouts} ms`);
  });

  it('a worker that was asked long before makes no page complete for a caller whose time is up', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    // As for a request that has been outstanding for longer than the caller has time.
    cluster.ask = () => 0;
    const page = { again: [], bodies: [bodyOf('text')], isEmpty: false, state: NO_FAILURES };
    cluster.render = async () => ({ ...page, isIncomplete: true });
    const late = rounds.collect(TEXT, 100);
    t.mock.timers.tick(100);
    await assert.rejects(late, { code: 'PROM_CLIENT_TIMEOUT' });
    assert.equal(String(await rounds.collect(TEXT, 100)), 'text');
  });

  it("a caller whose time is up gets whatever the application's aggregator throws, as others do", async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [proxy, 'text', undefined]) {
      cluster.render = () => Promise.reject(thrown);
      const rejectsWithIt = caller =>
        caller.then(
          () => false,
          error => error === thrown,
        );
      cluster.ask = () => 0;
      assert.ok(await rejectsWithIt(rounds.collect(TEXT, 100)));
      cluster.ask = () => 60_000;
      const late = rounds.collect(TEXT, 100);
      t.mock.timers.tick(100);
      assert.ok(await rejectsWithIt(late));
    }
  });
});

it('callers who want some metrics share a round if they want at most ten selections; all others are served', async () => {
  const selection = i => rounds.collect({ ...TEXT, names: [`m${i}`] }, 5000);
  const callers = [...Array.from({ length: 12 }, (_, i) => selection(i)), selection(0)];
  const whole = rounds.collect(TEXT, 5000);
  const settled = Promise.allSettled(callers);
  await finishRender();
  assert.equal(renders[0].formats.length, 11);
  assert.equal((await whole).toString(), 'text');
  const results = await settled;
  const refused = results.flatMap(({ reason }, i) => (reason === undefined ? [] : [i]));
  assert.deepEqual(refused, [10, 11]);
  assert.match(results[10].reason.message, /^There are too many scrapes of different metrics/);
});

it('many workers are asked in several turns of the event loop', async () => {
  const WORKERS = 64;
  const MILLISECONDS = 0.1;
  const turns = new Set();
  let turn = 0;
  cluster.connected = () => Array.from({ length: WORKERS }, (_, i) => ({ worker: { id: i + 1 } }));
  let asked = 0;
  cluster.ask = worker => {
    turns.add(turn);
    asked++;
    // It answers before the others are asked.
    setImmediate(() => rounds.settle(worker, true));
    for (const end = performance.now() + MILLISECONDS; performance.now() < end;);
    return 60_000;
  };
  const page = rounds.collect(TEXT, 60_000);
  while (renders.length === 0) {
    await new Promise(resolve => setImmediate(resolve));
    turn++;
  }
  await finishRender();
  await page;
  assert.equal(asked, WORKERS);
  assert.ok(turns.size > 3, `${turns.size} turns`);
});

it('a worker that has to be asked again because its collect hooks had begun before the round is asked by that round only, once', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked = [];
  cluster.connected = () => [WORKER];
  cluster.ask = () => {
    asked.push(performance.now());
    return 60_000;
  };
  const turn = () => new Promise(resolve => setImmediate(resolve));
  const first = rounds.collect(TEXT, 60_000);
  while (asked.length < 1) await turn();
  const second = rounds.collect(TEXT, 60_000);
  t.mock.timers.tick(250);
  while (asked.length < 2) await turn();
  rounds.settle(WORKER, true, asked[0]);
  assert.equal(asked.length, 3);
  await finishRender(0);
  await first;
  rounds.settle(WORKER, true, asked[2]);
  await finishRender(1);
  await second;
  assert.deepEqual([asked.length, renders.length], [3, 2]);
});

it('a worker that is waited for a shorter time than the callers wait does not delay them any longer', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let asked = 0;
  cluster.connected = () => [WORKER];
  cluster.ask = () => {
    asked++;
    return 300;
  };
  const caller = rounds.collect(TEXT, 60_000);
  while (asked === 0) await new Promise(resolve => setImmediate(resolve));
  t.mock.timers.tick(299);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(renders.length, 0);
  t.mock.timers.tick(1);
  await finishRender();
  assert.equal((await caller).toString(), 'text');
});
