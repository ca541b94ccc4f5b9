'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Workload } = require('../../shared/workload.js');
const { OURS, clusterClassOf } = require('../../shared/clients.js');
const { millisecondsPerCall } = require('../timing.js');
const { median } = require('../../shared/statistics.js');

const WORKER_ID = 1;
const HOOK_TIME = 1000; // ms; there are no hooks

/** A worker's answer, and how the primary processes it, without transport. */
function exchanging(samples, { isFirst = false }) {
  return async ({ client, library, seconds }) => {
    const workload = new Workload(library, { samples, kind: 'integers', seed: 1 });
    const makeExchange = client === OURS ? fileExchange : () => jsonExchange(clusterClassOf(client, library));
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-snapshot-'));
    try {
      return await timeExchange(makeExchange, { workload, library, directory, seconds, isFirst });
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  };
}

async function timeExchange(makeExchange, { workload, library, directory, seconds, isFirst }) {
  let exchange = makeExchange(library.register, directory);
  let round = 0;
  const sizes = [];
  const prepare = () => {
    workload.change(++round);
    if (isFirst) exchange = makeExchange(library.register, directory);
  };
  const write = async () => sizes.push(await exchange.write(library.register));
  const writing = await millisecondsPerCall(write, {
    seconds: seconds / 2,
    before: async () => {
      if (sizes.length > 0) await exchange.read();
      prepare();
    },
  });
  await exchange.read();
  const reading = await millisecondsPerCall(() => exchange.read(), {
    seconds: seconds / 2,
    before: async () => {
      prepare();
      await write();
    },
  });
  return { write: writing.wall, gap: writing.gap, read: reading.wall, bytes: median(sizes) };
}

/** This library: a binary file, and the store of the aggregator thread. */
function fileExchange(registry, directory) {
  const { SnapshotSource } = require('../../../lib/cluster/capture/snapshot-source');
  const { SnapshotFile } = require('../../../lib/cluster/worker/snapshot-file');
  const { ClusterStore } = require('../../../lib/cluster/store/cluster-store');
  const { runThrough } = require('../../../lib/event-loop/slices');
  const { readRegularFile } = require('../../../lib/cluster/spool/safe-files');
  const source = new SnapshotSource(() => [registry]);
  const store = new ClusterStore();
  return {
    async write() {
      await source.prepare(HOOK_TIME);
      const position = store.journalPositionOf(WORKER_ID);
      const file = new SnapshotFile(directory, 'snapshot');
      const dictionary = await source.encodeDictionary(position, part => file.writeAhead(part));
      const snapshot = source.capture(WORKER_ID, position, { dictionary });
      file.finish(snapshot);
      return snapshot.bytes;
    },
    read() {
      const bytes = readRegularFile(path.join(directory, 'snapshot'));
      fs.unlinkSync(path.join(directory, 'snapshot'));
      store.apply(WORKER_ID, bytes);
      runThrough(store.merge(new Set()));
    },
  };
}

/** The other clients: JSON, and the parsed objects. */
function jsonExchange(ClusterRegistry) {
  let text = '';
  return {
    async write(registry) {
      text = JSON.stringify(await registry.getMetricsAsJSON());
      return text.length;
    },
    read() {
      ClusterRegistry.aggregate([JSON.parse(text)]);
    },
  };
}

const figures = { write: 'ms', gap: 'ms', read: 'ms', bytes: 'bytes' };

module.exports = {
  title: 'Snapshots of a cluster',
  note: "What a worker writes for its primary and what the primary's side does with it, without transport; `gap` is the longest time for which the worker's event loop is held while it writes. This library: a file is written, read and merged into the store of the aggregator thread; the first one, with all label sets, and a later one. The other clients: `getMetricsAsJSON()` and `JSON.stringify`, `JSON.parse` and `aggregate`.",
  cases: [
    { key: '10k', title: '10,000 samples', figures, measure: exchanging(10_000, {}) },
    { key: '100k', title: '100,000 samples', figures, seconds: 10, measure: exchanging(100_000, {}) },
    {
      key: 'first-100k',
      title: 'the first one, 100,000 samples',
      figures,
      seconds: 15,
      measure: exchanging(100_000, { isFirst: true }),
    },
  ],
};
