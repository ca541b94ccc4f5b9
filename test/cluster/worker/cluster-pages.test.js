'use strict';

// Which pages callers in a worker share. test/cluster/processes/worker-pages.test.js has real clusters.

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { ClusterPages } = require('../../../lib/cluster/worker/cluster-pages');
const { PAGE } = require('../../../lib/cluster/wire/messages');

const FORMAT = { format: 'text', gzip: false, selfMetrics: false };

it('names that are too many for a request are refused at once', async () => {
  const link = { id: 1, isConnected: () => true, send: assert.fail };
  const pages = new ClusterPages(/** @type {any} */ (link));
  pages.receive({ directory: '' });
  for (const names of [new Array(10_001).fill('a'), ['a'.repeat(2 ** 20 + 1)]])
    await assert.rejects(pages.page({ ...FORMAT, names }, 60_000), /^RangeError: names are too many/);
});

it('a caller with a short timeout does not wait for those with a long one', { timeout: 20_000 }, async () => {
  /** @type {any[]} */
  const long = [];
  const pages = new ClusterPages({
    id: 1,
    isConnected: () => true,
    send: (/** @type {any} */ request) => {
      if (request.timeout > 10_000) long.push(request);
      else setImmediate(answer, request, 'last known numbers');
    },
  });
  pages.receive({ directory: '' });
  /** @param {any} request */
  function answer({ pageId }, text = '') {
    pages.receive({ type: PAGE, pageId, page: Buffer.from(text).toString('base64') });
  }
  const patient = [pages.page(FORMAT, 60_000), pages.page(FORMAT, 60_000)];
  const hasty = [pages.page(FORMAT, 8000), pages.page(FORMAT, 9000)];
  for (const page of await Promise.all(hasty)) assert.equal(page?.toString(), 'last known numbers');
  assert.equal(long.length, 1);
  answer(long[0], 'new numbers');
  for (const page of await Promise.all(patient)) assert.equal(page?.toString(), 'new numbers');
});

it('a caller is refused at once if the primary is gone, even if the same page was requested a moment ago', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let isConnected = true;
  const link = { id: 1, isConnected: () => isConnected, send() {} };
  const pages = new ClusterPages(/** @type {any} */ (link));
  pages.receive({ directory: '' });
  const requested = pages.page(FORMAT, 60_000);
  isConnected = false;
  // No timer fires here.
  await assert.rejects(pages.page(FORMAT, 60_000), /^Error: Nobody aggregates/);
  pages.receive({ type: PAGE });
  await assert.rejects(requested, /^Error: Nobody aggregates/);
});
