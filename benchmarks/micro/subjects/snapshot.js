'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { fileExchange } = require('../file-exchange.js');
const { Workload } = require('../../shared/workload.js');
const { OURS, clusterClassOf } = require('../../shared/clients.js');
const { millisecondsPerCall } = require('../timing.js');
const { median } = require('../../shared/statistics.js');
const { LABEL_NAMES, labelSet } = require('../../shared/label-sets.js');

const LABEL_SETS = 100_000;
/** More than half of a table has to be removed before it is compacted. */
const REMOVED = 150_000;
const METRICS = 1000;
const METRICS_SETS = 20_000;

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

/** What a worker with many label sets writes: for the first time, or after most of them were removed. */
function writingLabelSets({ isFirst }) {
  return async ({ client, library, seconds }) => {
    const counter = new library.Counter({ name: 'requests', help: 'Requests', labelNames: LABEL_NAMES });
    const addUpTo = count => {
      for (let number = 0; number < count; number++) counter.inc(labelSet(number));
    };
    addUpTo(LABEL_SETS);
    const makeExchange = client === OURS ? fileExchange : () => jsonExchange(clusterClassOf(client, library));
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-snapshot-'));
    let exchange = makeExchange(library.register, directory);
    await exchange.write(library.register);
    const before = () => {
      exchange.read();
      if (isFirst) {
        exchange = makeExchange(library.register, directory);
        return;
      }
      addUpTo(LABEL_SETS + REMOVED);
      for (let number = 0; number < REMOVED; number++) counter.remove(labelSet(LABEL_SETS + number));
    };
    try {
      const { wall, gap } = await millisecondsPerCall(() => exchange.write(library.register), {
        seconds,
        before,
      });
      return { write: wall, gap };
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  };
}

/** What a worker with many metrics writes again and again: the cost of a metric, not that of a number. */
function writingMetrics(metricsOf) {
  return async ({ library, seconds }) => {
    const metrics = metricsOf(library);
    const record = (metric, set) =>
      metric.observe ? metric.observe({ set }, set) : metric.inc({ set }, set + 1);
    for (let set = 0; set < METRICS_SETS / metrics.length; set++)
      for (const each of metrics) record(each, set);
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-snapshot-'));
    const exchange = fileExchange(library.register, directory);
    try {
      await exchange.write();
      const before = () => {
        exchange.read();
        for (const metric of metrics) record(metric, 0);
      };
      const sections = [];
      const write = async () => {
        await exchange.write();
        sections.push(exchange.section);
      };
      const { wall, gap } = await millisecondsPerCall(write, { seconds, before });
      return { write: wall, gap, section: median(sections) };
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  };
}

/** A thousand summaries. */
function thousandSummaries({ Summary }) {
  return Array.from(
    { length: METRICS },
    (_, number) => new Summary({ name: `metric_${number}`, help: 'A metric', labelNames: ['set'] }),
  );
}

/** A thousand counters, gauges and histograms. */
function thousandMetrics({ Counter, Gauge, Histogram }) {
  const types = [Counter, Gauge, Counter, Histogram];
  return Array.from({ length: METRICS }, (_, number) => {
    const common = { name: `metric_${number}`, help: 'A metric', labelNames: ['set'] };
    return new types[number % types.length]({ ...common, buckets: [1, 10] });
  });
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
const FIGURES_OF_LABEL_SETS = { write: 'ms', gap: 'ms' };
const FIGURES_OF_METRICS = { ...FIGURES_OF_LABEL_SETS, section: 'ms' };

module.exports = {
  title: 'Snapshots of a cluster',
  note: "What a worker writes for its primary and what the primary's side does with it, without transport; `gap` is the longest time for which the worker's event loop is held while it writes, and `section` the capture's part of that. This library: a file is written, read and merged into the store of the aggregator thread; the first one, with all label sets, and a later one. The other clients: `getMetricsAsJSON()` and `JSON.stringify`, `JSON.parse` and `aggregate`.",
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
    {
      key: 'first-100k-label-sets',
      title: 'the first one of a counter with 100,000 label sets',
      figures: FIGURES_OF_LABEL_SETS,
      seconds: 10,
      measure: writingLabelSets({ isFirst: true }),
    },
    {
      key: 'compaction',
      title: 'after 150,000 of 250,000 label sets were removed',
      figures: FIGURES_OF_LABEL_SETS,
      // With the others this takes minutes.
      clients: [OURS],
      seconds: 15,
      measure: writingLabelSets({ isFirst: false }),
    },
    {
      key: 'thousand-metrics',
      title: '1,000 metrics with 20 label sets each',
      figures: FIGURES_OF_METRICS,
      clients: [OURS],
      seconds: 5,
      measure: writingMetrics(thousandMetrics),
    },
    {
      key: 'thousand-summaries',
      title: '1,000 summaries with 20 label sets each',
      figures: FIGURES_OF_METRICS,
      clients: [OURS],
      seconds: 5,
      measure: writingMetrics(thousandSummaries),
    },
    {
      key: 'summaries-20k',
      title: 'a summary with 20,000 label sets',
      figures: FIGURES_OF_METRICS,
      clients: [OURS],
      seconds: 5,
      measure: writingMetrics(({ Summary }) => [
        new Summary({ name: 'seconds', help: 'Seconds', labelNames: ['set'] }),
      ]),
    },
  ],
};
