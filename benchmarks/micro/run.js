'use strict';

// The micro benchmarks: `npm run bench`, or `npm run bench -- --short` for CI. docs/internals/benchmarks.md
// and docs/internals/benchmark-runtime.md are generated from the results.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { OURS, clientNamed } = require('../shared/clients.js');
const { isOverheadWanted, runOverhead, writeOverheadDocument } = require('../runtime-overhead/overhead.js');
const { measureUntilHeld } = require('../shared/floors.js');
const { describeMachine } = require('../shared/machine.js');
const { Progress } = require('../shared/progress.js');
const { writeResults } = require('../shared/results.js');
const { gateOf, judge } = require('./budgets.js');
const { documentOf } = require('./document.js');
const { caseOf, planFor, subjectNamed } = require('./plan.js');
const { measureInProcess, stopAllProcesses } = require('./processes.js');
const { budgetTable, errorLines, subjectTable } = require('./report.js');
const { newestCompleteResults } = require('./results.js');

/** @typedef {import('./budgets.js').Outcome} Outcome */

const DOCUMENT = path.join(__dirname, '..', '..', 'docs', 'internals', 'benchmarks.md');

const USAGE = `Usage: npm run bench -- [options]
  --short             only what benchmarks/floors.json has floors for, in two minutes; fails when one is not held
  --only A,B          only cases whose id begins like this: inc-labels, memory/counter-series, runtime-overhead
  --clients A,B       only these of prom-client, prometheus-io, ours
  --repetitions N     fresh processes for each case and library, default 3
  --seconds S         how long each process measures
  --document          measures nothing, and writes docs/internals/benchmarks.md from the newest results of a whole run`;

main().catch(error => {
  console.error(error);
  stopAllProcesses();
  process.exit(2);
});

async function main() {
  const options = readOptions();
  if (options.document) return writeDocument();
  stopOnSignals();
  const steps = planFor(options);
  const isWithOverhead = isOverheadWanted(options);
  if (steps.length === 0 && !isWithOverhead) throw new Error('nothing to measure is left by these options');
  if (steps.length > 0) await measureSteps(steps, options);
  if (isWithOverhead) await runOverhead(options);
}

/** @param {import('./plan.js').Step[]} steps */
async function measureSteps(steps, options) {
  const date = new Date().toISOString();
  const machine = describeMachine();
  console.log(`${machine}\n`);
  const outcomes = await runSteps(steps, options);
  const verdicts = outcomes.flatMap(judge);
  const shown = options.short ? verdicts.filter(({ gate }) => gate) : verdicts;
  if (shown.length > 0) console.log(`## Budgets\n\n${budgetTable(shown, { gates: options.short })}\n`);
  const loadAtEnd = os.loadavg()[0].toFixed(1);
  const file = writeResults('micro', { date, machine, loadAtEnd, options, outcomes });
  console.log(`Written to ${path.relative(process.cwd(), file)}`);
  const problems = problemsOf(outcomes, options.short ? verdicts : []);
  for (const problem of problems) console.error(`FAILED: ${problem}`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: 'boolean', default: false },
      only: { type: 'string' },
      clients: { type: 'string' },
      repetitions: { type: 'string' },
      seconds: { type: 'string' },
      document: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const clients = values.clients?.split(',');
  clients?.forEach(clientNamed); // throws for an unknown one
  const numberOf = text => (text === undefined ? undefined : Number(text));
  const { short, document } = values;
  const only = values.only?.split(',');
  return {
    short,
    document,
    only,
    clients,
    repetitions: numberOf(values.repetitions),
    seconds: numberOf(values.seconds),
  };
}

function stopOnSignals() {
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ]) {
    process.once(signal, () => {
      console.error(`\n${signal}: stopping`);
      stopAllProcesses();
      process.exit(128 + number);
    });
  }
}

/** Measures, and prints a table after each subject. */
async function runSteps(steps, { short }) {
  const progress = new Progress(steps, process.stderr);
  const outcomes = [];
  for (const [index, step] of steps.entries()) {
    const measure = () => runStep(step, progress);
    progress.begin(index);
    outcomes.push(short ? await measureUntilHeld(measure, areFloorsHeld) : await measure());
    progress.end();
    const subject = subjectOf(step);
    if (index + 1 < steps.length && subjectOf(steps[index + 1]) === subject) continue;
    const ofSubject = outcomes.filter(outcome => subjectOf(outcome) === subject);
    const lines = [
      `## ${subjectNamed(subject).title}`,
      '',
      subjectTable(ofSubject),
      ...errorLines(ofSubject),
    ];
    console.log(`${lines.join('\n')}\n`);
  }
  return outcomes;
}

function subjectOf({ id }) {
  return id.split('/')[0];
}

/**
 * A repetition measures the libraries one after the other, within seconds. Each begins with another one.
 *
 * @param {import('./plan.js').Step} step
 * @param {Progress} progress
 * @returns {Promise<Outcome>}
 */
async function runStep({ id, clients, repetitions, secondsOfProcess, figures }, progress) {
  const runs = Object.fromEntries(clients.map(client => [client, []]));
  const errors = {};
  for (let repetition = 0; repetition < repetitions; repetition++) {
    progress.repetition(repetition, repetitions);
    for (let turn = 0; turn < clients.length; turn++) {
      const client = clients[(repetition + turn) % clients.length];
      const answer = await measureInProcess({ id, client, seconds: secondsOfProcess });
      runs[client].push(answer.figures ?? null);
      if (answer.error !== undefined) errors[client] = answer.error;
    }
  }
  return { id, title: caseOf(id).title, figures, runs, errors };
}

/** @param {Outcome} outcome */
function areFloorsHeld(outcome) {
  const problems = gateProblems(judge(outcome));
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}

/** @param {import('./budgets.js').Verdict[]} verdicts */
function gateProblems(verdicts) {
  return verdicts
    .filter(({ gate }) => gate && !gate.holds)
    .map(
      ({ budget, gate }) => `${gateOf(budget)}: ${gate.value} does not hold ${JSON.stringify(gate.floor)}`,
    );
}

/** A run fails if this library fails in a case, or a floor is not held. */
function problemsOf(outcomes, verdicts) {
  const errors = outcomes.flatMap(({ id, errors }) => (OURS in errors ? [`${id}: ${errors[OURS]}`] : []));
  return [...errors, ...gateProblems(verdicts)];
}

async function writeDocument() {
  const results = newestCompleteResults(planFor({ short: false }));
  fs.writeFileSync(DOCUMENT, await documentOf(results));
  console.log(`Written: ${path.relative(process.cwd(), DOCUMENT)}, from the results of ${results.date}`);
  await writeOverheadDocument();
}
