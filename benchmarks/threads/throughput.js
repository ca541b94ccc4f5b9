'use strict';

// Throughput of a thread that records without end while it is scraped each 100 ms, compared with the same
// thread while it is not: short windows in turns, CPU time of the thread for each recording. CPU time and not
// wall time, because other programs of the machine take the processor from both, but not evenly. Each page is
// checked: it has to show what the thread had recorded at that moment.
//
//   node benchmarks/threads/throughput.js --windows 200 --samples 10000

const { once } = require('node:events');
const fs = require('node:fs');
const { setTimeout: pause } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { Counter, Histogram, WorkerRegistry } = require('../..');

const WINDOW_MILLISECONDS = 250;
const SCRAPE_MILLISECONDS = 100;
const RECORDINGS_PER_TURN = 1000;
/** Not scraped, scraped, scraped, not scraped: a machine that gets slower affects both alike. */
const IS_SCRAPED = [false, true, true, false];

/**
 * Memory of both threads.
 *
 * @param {SharedArrayBuffer} memory
 * @param {number} windows
 */
function sharedOf(memory, windows) {
  return {
    window: new Int32Array(memory, 0, 1),
    recorded: new Float64Array(memory, 8, 1),
    nanoseconds: new Float64Array(memory, 16, windows),
  };
}

/** @returns {number} CPU time of this thread in nanoseconds */
function threadCpu() {
  const { threadCpuUsage } = /** @type {any} */ (process);
  if (threadCpuUsage === undefined)
    return Number(fs.readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]);
  const { user, system } = threadCpuUsage();
  return (user + system) * 1000;
}

function thread() {
  const { memory, windows, samples } = workerData;
  const { window, recorded, nanoseconds } = sharedOf(memory, windows);
  new WorkerRegistry();
  const counter = new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'] });
  const histogram = new Histogram({ name: 'seconds', help: 'h', labelNames: ['kind'] });
  for (let i = 0; i < samples; i++) counter.inc({ kind: `kind${i}` });
  const all = counter.labels('all');
  let [current, count, cpu] = [-1, 0, threadCpu()];
  for (let total = 0; current < windows;) {
    for (let i = 0; i < RECORDINGS_PER_TURN; i++) {
      all.inc();
      counter.inc({ kind: `kind${i}` });
      histogram.observe({ kind: 'a' }, i / 100);
    }
    count += RECORDINGS_PER_TURN;
    recorded[0] = total += RECORDINGS_PER_TURN;
    const next = Atomics.load(window, 0);
    if (next === current) continue;
    const now = threadCpu();
    if (current >= 0) nanoseconds[current] = (now - cpu) / count;
    [current, count, cpu] = [next, 0, threadCpu()];
  }
}

/** @param {number[]} numbers */
function sorted(numbers) {
  return [...numbers].sort((a, b) => a - b);
}

/**
 * @param {number} windows a multiple of four
 * @param {number} samples of the thread
 */
async function main(windows, samples) {
  const registry = new WorkerRegistry();
  const memory = new SharedArrayBuffer(16 + windows * 8);
  const { window, recorded, nanoseconds } = sharedOf(memory, windows);
  Atomics.store(window, 0, -1);
  const worker = new Worker(__filename, { workerData: { memory, windows, samples } });
  while (recorded[0] === 0) await pause(10);
  let scrapes = 0;
  const scrape = async () => {
    const before = recorded[0];
    const page = await registry.workerMetrics();
    const shown = Number(/^jobs_total\{kind="all"\} (\d+)$/m.exec(page)?.[1]);
    // It may be in the middle of a turn.
    if (!(before <= shown && shown <= recorded[0] + RECORDINGS_PER_TURN))
      throw new Error(`${shown} shown, ${before} to ${recorded[0]} recorded`);
    scrapes++;
  };
  // The first one reads all label sets.
  await scrape();
  for (let i = 0; i < windows; i++) {
    Atomics.store(window, 0, i);
    const end = performance.now() + WINDOW_MILLISECONDS;
    for (let left = WINDOW_MILLISECONDS; left > 0; left = end - performance.now()) {
      if (IS_SCRAPED[i % 4]) await scrape();
      await pause(Math.max(0, Math.min(SCRAPE_MILLISECONDS, end - performance.now())));
    }
  }
  Atomics.store(window, 0, windows);
  await once(worker, 'exit');
  const ratios = [];
  for (let i = 0; i < windows; i += 4) {
    const [a, b, c, d] = nanoseconds.subarray(i, i + 4);
    ratios.push(a / b, d / c);
  }
  const [low, median, high] = [0.25, 0.5, 0.75].map(q => sorted(ratios)[Math.floor(q * ratios.length)]);
  const [scraped, alone] = [true, false].map(which => {
    const chosen = Array.from(nanoseconds).filter((_, i) => IS_SCRAPED[i % 4] === which);
    return sorted(chosen)[chosen.length >> 1];
  });
  console.log(`Node.js ${process.version}, ${samples} samples, ${windows} windows, ${scrapes} exact scrapes`);
  console.log(`CPU time of a turn: scraped ${scraped.toFixed(1)} ns, not scraped ${alone.toFixed(1)} ns`);
  console.log(
    `throughput scraped / not scraped: ${median.toFixed(3)} (quartiles ${low.toFixed(3)} to ${high.toFixed(3)})`,
  );
  await registry.shutdown();
}

const { values } = parseArgs({
  options: { windows: { type: 'string', default: '200' }, samples: { type: 'string', default: '10000' } },
});
if (isMainThread) main(Math.ceil(Number(values.windows) / 4) * 4, Number(values.samples));
else thread();
