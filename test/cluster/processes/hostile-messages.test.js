'use strict';

// 800 messages with fields of any type (32,000 in test:long), in both directions of the channel between a
// primary and its worker. Neither process dies or hangs, and the numbers of everybody are exact afterwards.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { effort, seed } = require('../../fixtures/seeded-fast-check');
const { sharedCluster } = require('../../fixtures/shared-cluster');

const FIXTURES = {
  input: require.resolve('../../fixtures/hostile-input'),
  random: require.resolve('../../../benchmarks/shared/random'),
};
const tampering = {
  start: context => {
    context.require('../cluster/processes/fixtures/cluster-tampering').installTampering(context);
    const { client, state } = context;
    const counter = new client.Counter({ name: 'recorded_total', help: 'h' });
    state.record = () => counter.inc();
  },
};

const SCRAPES = 80 * effort;
const MESSAGES_A_SCRAPE = 10;

describe(`messages with fields of any type (PROPERTY_SEED=${seed})`, () => {
  const cluster = sharedCluster({ workers: 2, worker: tampering });
  const record = ({ state }) => state.record();
  const total = async () => (await cluster().scrape()).get('recorded_total');

  it('messages with fields of any type from a worker cost at most its own numbers, for as long as it sends them', async () => {
    const before = await total();
    await cluster().inWorkers([1, 2], record);
    await cluster().inWorker(
      1,
      ({ state, require }, { input, random }, seed, messages) => {
        const { hostileMessage } = require(input);
        const next = require(random).randomFrom(seed);
        const forms = [
          {},
          { source: Buffer.alloc(256).toString('base64'), reason: 'ENOSPC' },
          { metrics: [[{ name: 'x', help: 'h', type: 'gauge', values: [{ value: 1, labels: {} }] }]] },
          { error: 'failed' },
        ];
        // Rarely the first two: such a message is not read further.
        const content = ['file', 'bytes', 'source', 'reason', 'metrics', 'error'];
        const fields = ['type', 'requestId', ...content, ...content, ...content];
        state.tamper = message => {
          for (let i = 0; i < messages; i++) {
            const valid = { ...message, ...forms[Math.floor(next() * forms.length)] };
            state.send(hostileMessage(valid, next, fields));
          }
          return message;
        };
      },
      FIXTURES,
      seed,
      MESSAGES_A_SCRAPE,
    );
    for (let i = 0; i < SCRAPES; i++) {
      await cluster().inWorker(2, record);
      // Worker 1 may have spoilt its own numbers; those of worker 2 are part of every page.
      const shown = await total();
      assert.ok(shown >= i + 1, `scrape ${i} shows ${shown}`);
    }
    await cluster().inWorker(1, ({ state }) => (state.tamper = undefined));
    // The answers that were accepted instead of its own were from before.
    await total();
    assert.equal(await total(), before + 2 + SCRAPES);
  });

  it('messages with fields of any type from the primary leave a worker that answers, with all that it has counted', async () => {
    const before = await total();
    const place = cluster().spool;
    for (let i = 0; i < SCRAPES; i++) {
      await cluster().run(
        ({ cluster, require }, { input, random }, { seed, messages, directories }) => {
          const { hostileMessage, pick } = require(input);
          const next = require(random).randomFrom(seed);
          const fields = ['type', 'requestId', 'badLog', 'known', 'timeout', 'checkpointInterval'];
          for (let i = 0; i < messages; i++) {
            const type = pick(next, ['prom-client:getMetricsReq', 'prom-client-cluster:welcome']);
            const known = { incarnation: '00'.repeat(16), epoch: 1, series: 1 };
            const request = { type, requestId: 1e9 + i, known, timeout: 1000, badLog: '' };
            const directory = pick(next, directories);
            cluster.workers[1].send({ ...hostileMessage(request, next, fields), directory });
          }
        },
        FIXTURES,
        {
          seed: seed + i,
          messages: MESSAGES_A_SCRAPE,
          // Where a worker writes is the primary's choice, so this test leaves out other places.
          directories: [place, `${place}/missing`, '', 'relative', '../..', null, 5, {}, ['/'], undefined],
        },
      );
      await cluster().inWorker(1, record);
    }
    assert.equal(await total(), before + SCRAPES);
    await cluster().inWorker(1, record);
    assert.equal(await total(), before + SCRAPES + 1);
  });
});
