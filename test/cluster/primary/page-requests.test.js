'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { PageRequests } = require('../../../lib/cluster/primary/page-requests');

it('a worker gets an answer whatever an aggregator has thrown', async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const [thrown, text] of [
    [new Error('no connection'), 'no connection'],
    [undefined, 'undefined'],
    [Symbol('s'), 'Symbol(s)'],
    [{ message: { toString: null } }, 'an error that cannot be printed'],
    [Object.create(null), 'an error that cannot be printed'],
    [proxy, 'an error that cannot be printed'],
  ]) {
    const rounds = { collect: () => Promise.reject(thrown) };
    const requests = new PageRequests(rounds, { directory: '/tmp', send() {} });
    const answer = await new Promise(resolve => {
      const worker = { id: 1, isConnected: () => true, send: resolve };
      requests.receive({ worker }, { pageId: 1, format: { format: 'text' }, timeout: 100 });
    });
    assert.deepEqual([answer.pageId, answer.error], [1, text]);
  }
});
