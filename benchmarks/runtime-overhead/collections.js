'use strict';

// Measures what `runtime: true` adds to a process with default metrics, by the rate of garbage collections:
// `node benchmarks/runtime-overhead/collections.js`, two minutes. Each load has its own process, in which
// windows with and without `runtime` alternate.

const { fork } = require('node:child_process');
const { setTimeout: sleep } = require('node:timers/promises');
const { Progress } = require('../shared/progress.js');
const { number, table } = require('../shared/table.js');

const PAIRS = 10;
const WINDOW = 2000; // milliseconds
const SCRAPES = 2; // of each window
const TICK = 5; // milliseconds between two allocations

// A new space of 1 MiB needs a collection after some hundred kilobytes.
const SMALL_SPACE = ['--max-semi-space-size=1'];

/** @type {{title: string, flags: string[], kilobytes: number}[]} `kilobytes` are allocated per tick */
const LOADS = [
  { title: 'idle', flags: [], kilobytes: 0 },
  { title: 'some collections', flags: SMALL_SPACE, kilobytes: 500 },
  { title: 'very many collections', flags: [...SMALL_SPACE, '--single-threaded-gc'], kilobytes: 6000 },
];

if (process.send) process.once('message', load => measure(load));
else main();

async function main() {
  const seconds = ((PAIRS * 2 + 1) * WINDOW) / 1e3;
  const progress = new Progress(
    LOADS.map(({ title }) => ({ title, seconds })),
    process.stderr,
  );
  const rows = [];
  for (const [index, load] of LOADS.entries()) {
    progress.begin(index);
    rows.push(rowOf(load, await outcomeOf(load, progress)));
    progress.end();
  }
  const head = [
    'the process',
    'collections a second',
    'busy, %',
    'added, % of a CPU (mean ± standard error)',
  ];
  console.log(table(head, rows));
}

function outcomeOf(load, progress) {
  return new Promise((resolve, reject) => {
    const child = fork(__filename, { execArgv: load.flags });
    child.send(load);
    child.on('message', message => {
      if (message.done === undefined) resolve(message);
      else progress.repetition(message.done, PAIRS);
    });
    child.on('exit', code => reject(new Error(`the process ended with ${code}`)));
  });
}

function rowOf({ title }, { pairs, collections }) {
  const added = pairs.map(({ without, with: all }) => all - without);
  const mean = meanOf(added);
  const deviation = Math.sqrt(meanOf(added.map(value => (value - mean) ** 2)) * (PAIRS / (PAIRS - 1)));
  const error = deviation / Math.sqrt(PAIRS);
  const busy = meanOf(pairs.map(({ without }) => without));
  return [title, number(collections), number(busy), `${mean.toFixed(2)} ± ${error.toFixed(2)}`];
}

function meanOf(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Runs in the process under load. */
async function measure({ kilobytes }) {
  let garbage;
  const timer = setInterval(() => {
    for (let kilobyte = 0; kilobyte < kilobytes; kilobyte++) garbage = new Array(128).fill(kilobyte);
  }, TICK);
  if (kilobytes === 0) clearInterval(timer);
  await window(true);
  const pairs = [];
  let collections = 0;
  for (let pair = 0; pair < PAIRS; pair++) {
    const first = pair % 2 === 0;
    const one = await window(first);
    const other = await window(!first);
    const [all, without] = first ? [one, other] : [other, one];
    pairs.push({ without: without.share, with: all.share });
    collections += all.collections;
    process.send({ done: pair + 1 });
  }
  clearInterval(timer);
  process.send({ pairs, collections: collections / ((PAIRS * WINDOW) / 1e3), garbage: garbage?.length });
  process.disconnect();
}

/** @returns {Promise<{share: number, collections: number}>} per cent of a CPU; runs of the collector */
async function window(runtime) {
  const { Registry, collectDefaultMetrics } = require('../../index.js');
  const register = new Registry();
  const stop = collectDefaultMetrics({ register, runtime });
  const began = performance.now();
  const before = process.cpuUsage();
  for (let scrape = 1; scrape <= SCRAPES; scrape++) {
    await sleep(began + (scrape * WINDOW) / SCRAPES - performance.now());
    await register.metrics();
  }
  const { user, system } = process.cpuUsage(before);
  const share = (user + system) / 10 / (performance.now() - began);
  const runs = await register.getSingleMetric('nodejs_gc_runs_total')?.get();
  stop();
  return { share, collections: runs ? runs.values.reduce((sum, { value }) => sum + value, 0) : 0 };
}
