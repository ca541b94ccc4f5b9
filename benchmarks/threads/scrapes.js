'use strict';

// Scrapes of four threads: this library's WorkerRegistry and that of prom-client's successor, in turns, each
// in a process of its own. Needs Node.js 22 or later, as the successor does.
//
//   node benchmarks/threads/scrapes.js --samples 10000 --rounds 5

const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { parseArgs } = require('node:util');

const CLIENTS = ['ours', 'prometheus-io'];

const { values } = parseArgs({
  options: { samples: { type: 'string', default: '10000' }, rounds: { type: 'string', default: '5' } },
});

if (Number(process.versions.node.split('.')[0]) < 22) {
  console.log(`Scrapes are not measured: @prometheus-io/client needs Node.js 22, this is ${process.version}`);
  process.exit();
}

/** @param {number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/**
 * @param {string} client
 * @param {...string} mode
 * @returns {Record<string, number>} figures of one process
 */
function run(client, ...mode) {
  const program = path.join(__dirname, 'process.js');
  const output = execFileSync(process.execPath, [program, client, values.samples, ...mode]);
  return JSON.parse(output.toString());
}

/** @type {Record<string, Record<string, number>[]>} */
const results = { ours: [], 'prometheus-io': [] };
for (let round = 0; round < Number(values.rounds); round++)
  for (const client of CLIENTS) results[client].push(run(client));

console.log(`Node.js ${process.version}, 4 threads x ${values.samples} samples, medians of ${values.rounds}`);
for (const figure of Object.keys(results.ours[0])) {
  const [ours, theirs] = CLIENTS.map(client => median(results[client].map(result => result[figure])));
  console.log(
    `${figure}: ${ours.toFixed(2)}, successor ${theirs.toFixed(2)}, ratio ${(theirs / ours).toFixed(1)}`,
  );
}
const [ours, theirs] = CLIENTS.map(client => run(client, 'bytes'));
for (const figure of Object.keys(ours))
  console.log(`${figure}: ${ours[figure]}, successor ${theirs[figure]}`);
