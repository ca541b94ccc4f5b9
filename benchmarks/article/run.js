'use strict';

// The article's benchmark: `npm run bench:article`. How to read it is in docs/internals/benchmark-article.md.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { stopAllTrees } = require('../cluster/tree.js');
const { describeMachine } = require('../shared/machine.js');
const { Progress } = require('../shared/progress.js');
const { DIRECTORY } = require('../shared/results.js');
const { measureRounds } = require('./measurement.js');
const { nodeBinary } = require('./node-binary.js');
const { planFor, ROUND_KEYS, stepsOf } = require('./plan.js');
const { describeRatios, describeRound } = require('./report.js');
const { mergeResults, writeDocument, writeResults } = require('./results.js');
const { CLIENT_KEYS } = require('./runs.js');

const USAGE = `Usage: npm run bench:article -- [options]
  --short             two rounds with two repetitions, in less than three minutes
  --rounds A,B        only these of ${ROUND_KEYS.join(', ')}
  --clients A,B       only these of ${CLIENT_KEYS.join(', ')}
  --repetitions N     of each round instead of the plan's
  --seconds N         of each segment instead of the plan's
  --samples N         of each worker instead of the plan's
  --workers N         instead of 4
  --no-gzip           scrapes without compression; else with gzip, as Prometheus, where it is offered
  --node PATH         the Node.js to measure on, instead of Node 24 from npm
  --output DIRECTORY  for the files of results, instead of benchmarks/results
  --merge FILE...     measures nothing: one report from files of results (.json); of equal rounds the newest
  --document          writes tables and drawings of docs/internals/ and the table of README.md as well`;

let isStopping = false;

main().catch(async error => {
  if (isStopping) return; // the pending measurement fails, and the signal handler ends the program
  console.error(error);
  await stopAllTrees();
  process.exit(2);
});

async function main() {
  const { merge, node, ...options } = readOptions();
  if (merge) {
    await report(mergeResults(merge), options);
    return;
  }
  const rounds = planFor(options); // reports wrong options before anything is installed
  const binary = await nodeBinary(node);
  if (binary === fs.realpathSync(process.execPath)) await measure(rounds, options);
  else runOn(binary);
}

/** Starts this program again with that binary, so all its processes use it. */
function runOn(binary) {
  const child = spawn(binary, [...process.argv.slice(1), '--node', binary], { stdio: 'inherit' });
  // Ctrl-C reaches both processes; the child ends what it has started, then this one ends
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.once('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
}

async function measure(rounds, options) {
  stopOnSignals();
  const machine = describeMachine(); // with the load before the measurement
  console.log(`${machine}\n`);
  const steps = rounds.flatMap((round, index) =>
    stepsOf(round, round.samples !== rounds[index - 1]?.samples),
  );
  const progress = new Progress(steps, process.stderr);
  let step = -1;
  const onStep = () => {
    if (step >= 0) progress.end();
    progress.begin(++step);
  };
  const measured = [];
  for await (const round of measureRounds(rounds, { onStep })) {
    measured.push(round);
    console.log(`${describeRound(round)}\n`);
  }
  progress.end();
  await report(
    { date: new Date().toISOString(), machine: machine.replace(/, load .*$/, ''), rounds: measured },
    options,
  );
}

async function report(results, { document, output }) {
  console.log(`${describeRatios(results.rounds)}\n`);
  const files = await writeResults(results, output);
  if (document) files.push(...(await writeDocument(results)));
  for (const file of files) console.log(`Written to ${path.relative(process.cwd(), file)}`);
}

function readOptions() {
  const number = { type: 'string' };
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    allowNegative: true,
    options: {
      short: { type: 'boolean' },
      rounds: { type: 'string' },
      clients: { type: 'string' },
      repetitions: number,
      seconds: number,
      samples: number,
      workers: number,
      gzip: { type: 'boolean' },
      node: { type: 'string' },
      output: { type: 'string', default: DIRECTORY },
      merge: { type: 'boolean' },
      document: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  if (Boolean(values.merge) !== positionals.length > 0)
    throw new Error(`--merge takes files, and nothing else does\n${USAGE}`);
  const lists = Object.fromEntries(['rounds', 'clients'].map(name => [name, values[name]?.split(',')]));
  const numbers = ['repetitions', 'seconds', 'samples', 'workers'].map(name => [
    name,
    positive(name, values[name]),
  ]);
  return { ...values, ...lists, ...Object.fromEntries(numbers), merge: values.merge && positionals };
}

function positive(name, value) {
  if (value === undefined) return undefined;
  if (!(Number.isInteger(Number(value)) && Number(value) > 0))
    throw new Error(`--${name} takes a whole number above 0`);
  return Number(value);
}

function stopOnSignals() {
  const numbers = { SIGINT: 2, SIGTERM: 15 };
  for (const [signal, number] of Object.entries(numbers)) {
    process.on(signal, async () => {
      if (isStopping) return; // a second signal, forwarded by the program that started this one
      isStopping = true;
      console.error(`\n${signal}: stopping`);
      await stopAllTrees();
      process.exit(128 + number);
    });
  }
}
