'use strict';

// CPU time of recording in a thread that takes part in the page of all threads, compared with one that does
// not: many short processes in turns, minima of the rounds in each, medians of the ratios of neighbours.
//
//   node benchmarks/threads/recording.js --processes 11

const { execFileSync } = require('node:child_process');
const { parseArgs } = require('node:util');

const ROUNDS = 25;

/** @param {boolean} takesPart */
function measure(takesPart) {
  const { Counter, Histogram, WorkerRegistry } = require('../..');
  if (takesPart) new WorkerRegistry(undefined, false);
  const labelNames = ['method', 'path', 'status'];
  const counter = new Counter({ name: 'requests_total', help: 'h', labelNames });
  const histogram = new Histogram({ name: 'seconds', help: 'h', labelNames: ['method'] });
  const labelSets = Array.from({ length: 100 }, (_, i) => ({ method: 'GET', path: `/${i}`, status: 200 }));
  for (const labels of labelSets) counter.inc(labels);
  const child = counter.labels('GET', '/1', 200);
  let created = 0;
  /** @type {[name: string, count: number, record: (i: number) => void][]} */
  const operations = [
    ['counter.inc(labels)', 2e5, i => counter.inc(labelSets[i % 100])],
    ['child.inc()', 1e6, () => child.inc()],
    ['histogram.observe(labels)', 2e5, i => histogram.observe({ method: 'GET' }, i % 10)],
    ['a new label set', 4e3, () => counter.inc({ method: 'GET', path: `/new${created++}`, status: 200 })],
  ];
  /** @type {Record<string, number>} */
  const nanoseconds = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, count, record] of operations) {
      const start = process.cpuUsage();
      for (let i = 0; i < count; i++) record(i);
      const { user, system } = process.cpuUsage(start);
      nanoseconds[name] = Math.min(nanoseconds[name] ?? Infinity, ((user + system) * 1000) / count);
    }
  }
  console.log(JSON.stringify(nanoseconds));
  process.exit();
}

/** @param {number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** @param {number} processes of each kind */
function compare(processes) {
  /** @type {Record<string, Record<string, number>[]>} */
  const results = { alone: [], 'takes-part': [] };
  for (let i = 0; i < processes; i++)
    for (const kind of Object.keys(results))
      results[kind].push(
        JSON.parse(execFileSync(process.execPath, [__filename, '--measure', kind]).toString()),
      );
  for (const name of Object.keys(results.alone[0])) {
    const [alone, takesPart] = Object.values(results).map(all => all.map(result => result[name]));
    const ratio = median(takesPart.map((time, i) => time / alone[i])).toFixed(2);
    const [least, leastAlone] = [takesPart, alone].map(times => Math.min(...times).toFixed(1));
    console.log(`${name}: ${least} ns, elsewhere ${leastAlone} ns, ratio ${ratio}`);
  }
}

const { values } = parseArgs({
  options: { processes: { type: 'string', default: '11' }, measure: { type: 'string' } },
});
if (values.measure === undefined) compare(Number(values.processes));
else measure(values.measure === 'takes-part');
