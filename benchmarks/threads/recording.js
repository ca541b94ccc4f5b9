'use strict';

// CPU time of recording in a thread that has joined a WorkerRegistry, compared with one that has
// not: two threads of one process that record in turns, a window of each operation each, while the other one
// sleeps. The ratios are medians of neighbouring windows, the times medians of all windows.
//
//   node benchmarks/threads/recording.js --windows 24

const { once } = require('node:events');
const { parseArgs } = require('node:util');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');

/** @returns {number} CPU time of this thread in nanoseconds */
function threadCpu() {
  // Older versions of Node.js have that of the process only, whose other threads sleep.
  const { user, system } = /** @type {any} */ (process.threadCpuUsage ?? process.cpuUsage)();
  return (user + system) * 1000;
}

/**
 * Windows take 10 ms at least: some kernels account CPU time at each tick of 4 ms only.
 *
 * @returns {[name: string, count: number, record: (i: number) => void][]}
 */
function operations() {
  const { Counter, Histogram, Summary } = require('../..');
  const labelNames = ['method', 'path', 'status'];
  const counter = new Counter({ name: 'requests_total', help: 'h', labelNames });
  const histogram = new Histogram({ name: 'seconds', help: 'h', labelNames: ['method'] });
  const summary = new Summary({ name: 'sizes', help: 'h', labelNames: ['method'] });
  const summaryChild = summary.labels('GET');
  const values = Array.from({ length: 1009 }, () => Math.random());
  const labelSets = Array.from({ length: 100 }, (_, i) => ({ method: 'GET', path: `/${i}`, status: 200 }));
  for (const labels of labelSets) counter.inc(labels);
  const child = counter.labels('GET', '/1', 200);
  let created = 0;
  return [
    ['counter.inc(labels)', 1e6, i => counter.inc(labelSets[i % 100])],
    ['child.inc()', 1e7, () => child.inc()],
    ['histogram.observe(labels)', 1e6, i => histogram.observe({ method: 'GET' }, i % 10)],
    ['summary.observe(labels)', 5e5, i => summary.observe({ method: 'GET' }, values[i % 1009])],
    ['observe() of a child of a summary', 5e5, i => summaryChild.observe(values[i % 1009])],
    ['a new label set', 2e4, () => counter.inc({ method: 'GET', path: `/new${created++}`, status: 200 })],
    ['a new label set of a summary', 2e4, () => summary.observe({ method: `new${created++}` }, 1)],
  ];
}

function thread() {
  if (workerData.hasJoined) {
    const { WorkerRegistry } = require('../..');
    new WorkerRegistry(undefined, false);
  }
  const all = operations();
  parentPort?.on('message', number => {
    const [, count, record] = all[number];
    const start = threadCpu();
    for (let i = 0; i < count; i++) record(i);
    parentPort?.postMessage((threadCpu() - start) / count);
  });
  parentPort?.postMessage('ready');
}

/** @param {number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** @param {number} windows */
async function main(windows) {
  const { WorkerRegistry } = require('../..');
  const registry = new WorkerRegistry();
  const kinds = [true, false].map(hasJoined => new Worker(__filename, { workerData: { hasJoined } }));
  await Promise.all(kinds.map(kind => once(kind, 'message')));
  const names = operations().map(([name]) => name);
  /** @type {number[][][]} */
  const times = kinds.map(() => names.map(() => []));
  for (let i = 0; i < windows; i++)
    for (const number of names.keys()) {
      // Not the same one first each time.
      for (const kind of i % 2 === 0 ? [0, 1] : [1, 0]) {
        kinds[kind].postMessage(number);
        const [time] = await once(kinds[kind], 'message');
        times[kind][number].push(time);
      }
    }
  console.log(`Node.js ${process.version}, ${windows} windows of each`);
  names.forEach((name, number) => {
    const [hasJoined, alone] = times.map(list => list[number]);
    const ratio = median(hasJoined.map((time, i) => time / alone[i])).toFixed(2);
    const [here, elsewhere] = [hasJoined, alone].map(list => median(list).toFixed(1));
    console.log(`${name}: ${here} ns, elsewhere ${elsewhere} ns, ratio ${ratio}`);
  });
  await Promise.all(kinds.map(kind => kind.terminate()));
  await registry.shutdown();
}

const { values } = parseArgs({ options: { windows: { type: 'string', default: '24' } } });
if (isMainThread) main(Number(values.windows));
else thread();
