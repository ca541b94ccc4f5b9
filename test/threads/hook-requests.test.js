'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');

/**
 * Requests of a hub, and what the thread is sent.
 *
 * @param {import('node:test').TestContext} t
 */
function requestsOfHub(t) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const file = require.resolve('../../lib/threads/hook-requests');
  delete require.cache[file];
  const { HookRequests } = require(file);
  /** @type {string[]} */
  const sent = [];
  const requests = new HookRequests((/** @type {any} */ { request }) => sent.push(request));
  return { sent, requests };
}

/** @param {Promise<unknown> | undefined} promise */
async function isPending(promise) {
  const pending = Symbol('pending');
  await turn();
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
}

describe('the collect hooks of a thread', () => {
  it('the collect hooks of a thread that has not begun run once for all calls', async t => {
    const { sent, requests } = requestsOfHub(t);
    const calls = ['a', 'b', 'a'].map(name => requests.collect(name));
    requests.started();
    requests.settle(new Map([['b', 'no memory']]));
    const results = await Promise.allSettled(calls);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.equal(/** @type {any} */ (results[1]).reason.message, 'in a thread, no memory');
    assert.equal(sent.length, 1);
  });

  it('the collect hooks of a thread run again, once, for all calls that came after they had begun', async t => {
    const { sent, requests } = requestsOfHub(t);
    const first = requests.collect('a');
    requests.started();
    const others = [requests.collect('a'), requests.collect('b')];
    requests.settle(new Map([['a', 'of the first']]));
    await assert.rejects(Promise.resolve(first), /of the first/);
    for (const call of others) assert.ok(await isPending(call));
    assert.equal(sent.length, 2);
    assert.ok(requests.isCurrent(sent[1]));
    requests.started();
    requests.settle(new Map());
    await Promise.all(others);
    assert.equal(sent.length, 2);
  });

  it('the collect hooks of a thread that is late are not waited for until it begins', async t => {
    const { sent, requests } = requestsOfHub(t);
    const first = requests.collect('a');
    t.mock.timers.tick(250);
    await first;
    assert.equal(requests.collect('a'), undefined);
    requests.started();
    const later = requests.collect('a');
    assert.ok(await isPending(later));
    requests.settle(new Map([['a', 'of the first']]));
    assert.ok(await isPending(later));
    assert.equal(sent.length, 2);
    requests.started();
    requests.settle(new Map());
    await later;
  });

  it('the collect hooks of a thread that has ended are not waited for', async t => {
    const { sent, requests } = requestsOfHub(t);
    const first = requests.collect('a');
    requests.started();
    const other = requests.collect('a');
    requests.end();
    await Promise.all([first, other]);
    assert.equal(requests.collect('a'), undefined);
    assert.equal(sent.length, 1);
  });
});
