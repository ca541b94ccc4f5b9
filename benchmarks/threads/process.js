'use strict';

// One process of the benchmark: a main thread that scrapes, and four threads that have metrics and an event
// loop whose gaps are measured. Prints its figures as JSON. With `bytes` as the third argument, these are the
// bytes of all messages between threads instead: counting them takes longer than sending them.

const { once } = require('node:events');
const v8 = require('node:v8');
const {
  BroadcastChannel,
  MessagePort,
  Worker,
  isMainThread,
  parentPort,
  workerData,
} = require('node:worker_threads');
const { setTimeout: pause } = require('node:timers/promises');

const THREADS = 4;
const SCRAPES = 10;

const [client, samples, mode] = isMainThread ? process.argv.slice(2) : workerData;
let sentBytes = 0;
if (mode === 'bytes') for (const { prototype } of [BroadcastChannel, MessagePort]) countBytes(prototype);

const { Counter, WorkerRegistry } = require(client === 'ours' ? '../..' : '@prometheus-io/client');

/** @param {any} channel on which messages are posted; those of this program are not objects */
function countBytes(channel) {
  const { postMessage } = channel;
  channel.postMessage = function (/** @type {any} */ message, /** @type {any} */ transfer) {
    if (typeof message === 'object') sentBytes += v8.serialize(copied(message)).length;
    return postMessage.call(this, message, transfer);
  };
}

/**
 * @param {any} message
 * @returns {any} the message without memory, which is shared or transferred
 */
function copied(message) {
  if (ArrayBuffer.isView(message) || message instanceof SharedArrayBuffer) return 0;
  if (Array.isArray(message)) return message.map(copied);
  if (typeof message !== 'object' || message === null) return message;
  return Object.fromEntries(Object.entries(message).map(([name, value]) => [name, copied(value)]));
}

/**
 * Between two turns of this thread's event loop, since the last call: the longest time, which includes waits
 * for a processor, and the most CPU time, which is what the thread itself has executed.
 *
 * @returns {() => [gap: number, turn: number]} milliseconds
 */
function gapMeter() {
  let [last, lastCpu] = [performance.now(), threadCpu()];
  let [gap, turn] = [0, 0];
  const measure = () => {
    const [now, cpu] = [performance.now(), threadCpu()];
    gap = Math.max(gap, now - last);
    turn = Math.max(turn, cpu - lastCpu);
    [last, lastCpu] = [now, cpu];
  };
  setInterval(measure, 1).unref();
  return () => {
    measure();
    /** @type {[number, number]} */
    const longest = [gap, turn];
    [gap, turn] = [0, 0];
    return longest;
  };
}

/** @param {number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** CPU time of this thread in milliseconds. */
function threadCpu() {
  const { user, system } = /** @type {any} */ (process).threadCpuUsage();
  return (user + system) / 1000;
}

/** CPU time of all threads in milliseconds. */
function processCpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function main() {
  const registry = new WorkerRegistry();
  const threads = Array.from(
    { length: THREADS },
    () => new Worker(__filename, { workerData: [client, samples, mode] }),
  );
  await Promise.all(threads.map(thread => once(thread, 'message')));
  // The first scrape sends and reads the label sets.
  const [firstCpu, first] = [processCpu(), performance.now()];
  const page = await registry.workerMetrics();
  const firstFigures = {
    'first scrape ms': performance.now() - first,
    'first scrape, CPU of all threads ms': processCpu() - firstCpu,
  };
  const sum = Number(/^requests_total\{[^}]*path="\/0"[^}]*\} (\d+)$/m.exec(page)?.[1]);
  if (sum !== THREADS * 3) throw new Error(`not the sum of all threads: ${sum}`);
  if (mode === 'bytes') {
    const bytes = await bytesOf(threads);
    await registry.workerMetrics();
    const figures = { 'first scrape, bytes': bytes, 'scrape, bytes': (await bytesOf(threads)) - bytes };
    console.log(JSON.stringify(figures));
    process.exit();
  }
  const gap = gapMeter();
  /** @type {Record<string, number[]>} */
  const figures = {
    'scrape ms': [],
    'main thread CPU ms': [],
    'main thread gap ms': [],
    'thread gap ms': [],
    'thread gap without a scrape ms': [],
    'thread turn, CPU ms': [],
    'thread turn without a scrape, CPU ms': [],
  };
  for (let scrape = 0; scrape < SCRAPES; scrape++) {
    await pause(100);
    await longestGap(threads);
    gap();
    const [cpu, start] = [threadCpu(), performance.now()];
    if (client === 'ours') await registry.workerMetricsBytes();
    else await registry.workerMetrics();
    const duration = performance.now() - start;
    figures['scrape ms'].push(duration);
    figures['main thread CPU ms'].push(threadCpu() - cpu);
    figures['main thread gap ms'].push(gap()[0]);
    const scraped = await longestGap(threads);
    await pause(100);
    await longestGap(threads);
    await pause(duration);
    const alone = await longestGap(threads);
    figures['thread gap ms'].push(scraped[0]);
    figures['thread gap without a scrape ms'].push(alone[0]);
    figures['thread turn, CPU ms'].push(scraped[1]);
    figures['thread turn without a scrape, CPU ms'].push(alone[1]);
  }
  const medians = Object.entries(figures).map(([name, numbers]) => [name, median(numbers)]);
  console.log(JSON.stringify({ ...firstFigures, ...Object.fromEntries(medians) }));
  process.exit();
}

/**
 * @param {Worker[]} threads
 * @returns {Promise<number[]>} the longest gap and turn of all threads since the last call, see gapMeter()
 */
async function longestGap(threads) {
  threads.forEach(thread => thread.postMessage('gap'));
  const all = await Promise.all(threads.map(async thread => (await once(thread, 'message'))[0]));
  return [0, 1].map(which => Math.max(...all.map(each => each[which])));
}

/**
 * @param {Worker[]} threads
 * @returns {Promise<number>} how many bytes were sent so far, by all
 */
async function bytesOf(threads) {
  threads.forEach(thread => thread.postMessage('bytes'));
  const counts = await Promise.all(threads.map(async thread => (await once(thread, 'message'))[0]));
  return counts.reduce((sum, count) => sum + count, sentBytes);
}

function thread() {
  new WorkerRegistry();
  const labelNames = ['method', 'path', 'status'];
  const counter = new Counter({ name: 'requests_total', help: 'Requests', labelNames });
  for (let i = 0; i < Number(samples); i++) counter.inc({ method: 'GET', path: `/${i}`, status: 200 }, 3);
  const gap = gapMeter();
  parentPort?.on('message', asked => parentPort?.postMessage(asked === 'bytes' ? sentBytes : gap()));
  parentPort?.postMessage('ready');
}

if (isMainThread) main();
else thread();
