'use strict';

// The cluster benchmark: `npm run bench:cluster`, or `npm run bench:cluster -- --short` for CI. How to read
// it is in docs/internals/benchmark-cluster.md.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { judge } = require('./budgets.js');
const { clientNamed, OURS } = require('../shared/clients.js');
const { AXES, GrowthLimits, growthOf, growthTable } = require('./growth.js');
const { growthSpec } = require('./growth-drawing.js');
const { drawInto } = require('../pictures/chart.js');
const { documentNumbers } = require('../pictures/stored.js');
const { runIdleScenario } = require('./idle.js');
const { runLatencyScenario } = require('./latency.js');
const { measureUntilHeld } = require('../shared/floors.js');
const { describeMachine } = require('../shared/machine.js');
const { planFor } = require('./plan.js');
const { Progress } = require('../shared/progress.js');
const { writeResults } = require('../shared/results.js');
const {
  budgetTable,
  failuresOf,
  idleTable,
  latencyTable,
  LEGEND,
  remarks,
  scrapeTable,
} = require('./report.js');
const { runScenario } = require('./scenario.js');
const { stopAllTrees } = require('./tree.js');

/** By measure: what runs a step, and what shows its result. */
const MEASURES = {
  scrape: { run: runScenario, show: lanes => [scrapeTable(lanes), ...remarks(lanes)] },
  growth: { run: runScenario, show: lanes => [scrapeTable(lanes), ...remarks(lanes)] },
  workers: { run: runScenario, show: lanes => [scrapeTable(lanes), ...remarks(lanes)] },
  latency: {
    run: runLatencyScenario,
    show: result => [latencyTable(result), ...failuresOf(result.lanes)],
  },
  idle: { run: runIdleScenario, show: result => [idleTable(result)] },
};

const USAGE = `Usage: npm run bench:cluster -- [options]
  --short             a few scenarios in some two minutes; fails when a gate fails
  --growth            only how the cost grows from 1,000 to 200,000 samples and 2 to 8 workers, also as a drawing;
                      without --short, --samples, --workers and --kind this is measured after the rest
  --no-growth         leave that out
  --document          if the growth is measured, write its drawing to docs/
  --samples N         only scenarios with so many samples a worker (1000, 10000, 100000, 1000000)
  --workers N         only scenarios with so many workers (2, 4); above 4: how the cost grows up to so many,
                      with 2,000 samples each; with 64, fails when their gate fails
  --kind KIND         only integers or floats
  --clients A,B       only these of prom-client, prometheus-io, ours
  --runs N            repetitions instead of the plan's
  --no-latency        leave out the latency of requests`;

const machine = describeMachine(); // with the load before the measurement

main().catch(async error => {
  console.error(error);
  await stopAllTrees();
  process.exit(2);
});

async function main() {
  const options = readOptions();
  if (!fs.existsSync(`/proc/self/task/${process.pid}/schedstat`)) {
    throw new Error('this benchmark reads the CPU time of single threads from /proc: it needs Linux');
  }
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-cluster-'));
  process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
  stopOnSignals();
  const steps = planFor(options);
  if (steps.length === 0) throw new Error('nothing to measure is left by these options');
  const growthSteps = steps.filter(isOfGrowth);
  if (options.document && growthSteps.length === 0) {
    throw new Error('--document draws the growth, which these options leave out');
  }
  console.log(`${machine}\n${LEGEND}\n`);
  const surroundings = { directory, progress: new Progress(steps, process.stderr), gated: options.short };
  const outcomes = await runSteps(
    steps.filter(step => !isOfGrowth(step)),
    surroundings,
  );
  // before the growth curves, so they are printed even if those are interrupted
  if (outcomes.length > 0) reportBudgets(options, outcomes);
  const grown = await runSteps(growthSteps, surroundings);
  if (grown.length > 0) await reportGrowth(options, grown);
  const gated = options.short ? outcomes : grown.filter(({ step }) => step.measure === 'workers');
  process.exitCode = gatesHold(gated) ? 0 : 1;
}

function isOfGrowth({ measure }) {
  return Object.hasOwn(AXES, measure);
}

function reportBudgets(options, outcomes) {
  const verdicts = outcomes.flatMap(outcome => outcome.verdicts);
  console.log(`## All budgets\n\n${budgetTable(verdicts, { gates: options.short })}\n`);
  sayWritten(writeScenarios('cluster', options, outcomes));
}

async function reportGrowth(options, outcomes) {
  const growth = growthOf(outcomes);
  console.log([`## Growth\n\n${growthTable(growth)}\n`, ...growth.notes, ''].join('\n'));
  const { measure } = outcomes[0].step;
  const file = writeScenarios(`cluster-${measure}`, options, outcomes);
  const { curves, notes } = growth;
  const numbers = { date: new Date().toISOString().slice(0, 10), machine, curves, notes };
  const drawings = await drawInto(file.replace(/json$/, 'svg'), growthSpec(numbers));
  const documented = options.document ? await documentNumbers(measure, numbers) : [];
  for (const written of [file, ...drawings, ...documented]) sayWritten(written);
}

function sayWritten(file) {
  console.log(`Written to ${path.relative(process.cwd(), file)}`);
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: 'boolean', default: false },
      growth: { type: 'boolean' },
      'no-growth': { type: 'boolean' },
      document: { type: 'boolean', default: false },
      samples: { type: 'string' },
      workers: { type: 'string' },
      kind: { type: 'string' },
      clients: { type: 'string' },
      runs: { type: 'string' },
      'no-latency': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  if (values.growth && values.short) throw new Error('--growth and --short exclude each other');
  if (values.growth && values['no-growth']) throw new Error('--growth and --no-growth exclude each other');
  const clients = values.clients?.split(',');
  clients?.forEach(clientNamed); // throws for an unknown one
  const numberOf = text => (text === undefined ? undefined : Number(text));
  const { short, document, kind } = values;
  const growth = values['no-growth'] ? false : values.growth;
  const filters = {
    samples: numberOf(values.samples),
    workers: numberOf(values.workers),
    runs: numberOf(values.runs),
  };
  return { short, growth, document, kind, clients, latency: !values['no-latency'], ...filters };
}

function stopOnSignals() {
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ]) {
    process.once(signal, async () => {
      console.error(`\n${signal}: stopping`);
      await stopAllTrees();
      process.exit(128 + number);
    });
  }
}

async function runSteps(steps, { directory, progress, gated }) {
  const limits = new GrowthLimits();
  const outcomes = [];
  for (const planned of steps) {
    const step = isOfGrowth(planned) ? limits.applyTo(planned) : planned;
    const onRepetition = (done, of) => progress.repetition(done, of);
    const measure = async () => {
      const result = await MEASURES[step.measure].run(step.scenario, { directory, onRepetition });
      const verdicts = judge(step, result);
      console.log(`${describeOutcome(step, result, verdicts)}\n`);
      return { step, result, verdicts };
    };
    progress.begin();
    const outcome = gated ? await measureUntilHeld(measure, isFinal) : await measure();
    progress.end();
    if (isOfGrowth(step)) limits.note(step, outcome.result);
    outcomes.push(outcome);
  }
  return outcomes;
}

/** A failed scrape or a wrong page is no noise. */
function isFinal({ result, verdicts }) {
  return failuresOf(oursAmong(lanesOf(result))).length > 0 || failedGates(verdicts).length === 0;
}

function failedGates(verdicts) {
  return verdicts.filter(({ gate }) => gate && !gate.holds);
}

function describeOutcome({ measure, title }, result, verdicts) {
  const parts = [`## ${title}`, '', ...MEASURES[measure].show(result)];
  if (verdicts.length > 0) parts.push('', budgetTable(verdicts, { gates: measure === 'workers' }));
  return parts.join('\n');
}

/** No scrape of this library failed or was wrong, and every gated budget holds within its margin. */
function gatesHold(outcomes) {
  const problems = outcomes.flatMap(({ step, result, verdicts }) => [
    ...failedGates(verdicts).map(({ budget }) => `${step.title}: ${budget.title}`),
    ...failuresOf(oursAmong(lanesOf(result))).map(failure => `${step.title}: ${failure}`),
  ]);
  for (const problem of problems) console.error(`GATE FAILED: ${problem}`);
  return problems.length === 0;
}

/** Idle processes have none. */
function lanesOf(result) {
  if (Array.isArray(result)) return result;
  return result.lanes ?? [];
}

function oursAmong(lanes) {
  return lanes.filter(({ client }) => client === OURS);
}

/** All measurements, for later comparisons. */
function writeScenarios(name, options, outcomes) {
  const scenarios = outcomes.map(({ step, result, verdicts }) => ({ ...step, result, verdicts }));
  return writeResults(name, { date: new Date().toISOString(), machine, options, scenarios });
}
