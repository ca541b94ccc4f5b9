'use strict';

// Checkpoints of a program that sets no option.

const assert = require('node:assert/strict');
const { it } = require('node:test');

const { startCluster, until } = require('../../fixtures/cluster-harness.js');

it('by default, a killed worker that was never scraped keeps what it had counted until its last checkpoint', async t => {
  const cluster = await startCluster(t, {
    options: { checkpointInterval: undefined },
    worker: {
      start: ({ client, state }) => {
        state.counter = new client.Counter({ name: 'done_total', help: 'h' });
      },
    },
  });
  const id = await cluster.fork();
  await until(() => cluster.spools().length === 1, 'there is a directory');
  const checkpoints = () => cluster.keptFiles(id).filter(name => name.includes('-r0-'));
  await until(() => checkpoints().length === 1, 'there is a first checkpoint');
  const [first] = checkpoints();
  await cluster.inWorker(id, ({ state }) => state.counter.inc(3));
  // It is removed when the next one is complete.
  await until(() => !checkpoints().includes(first), 'there is another one');
  await cluster.killWorker(id);
  assert.equal((await cluster.scrape()).get('done_total'), 3);
  await cluster.end();
});
