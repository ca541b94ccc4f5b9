'use strict';

// The budgets of a scrape (four workers, unless they grow), and what a result says about each.
//
// A gate is a budget that `--short` or `--workers 64` enforces, at the floor that benchmarks/floors.json has
// for it: the budget with a margin for noise. How the margins were found is in
// docs/internals/benchmark-cluster.md. Wall times and latencies have budgets but no gates: on a busy machine
// they depend mostly on other programs.

const { median, quantile } = require('../shared/statistics.js');
const { floorOf, isHeld } = require('../shared/floors.js');
const { clientNamed, OURS, REFERENCE, SUCCESSOR } = require('../shared/clients.js');

const KINDS = ['integers', 'floats'];

// Preemption only ever lengthens a section, so the lower quartile is nearer to what the library causes than
// the median.
const SECTION_QUANTILE = 0.25;
const MANY_WORKERS = 64;
const SMALLEST = 0.05; // ms of CPU; below it the difference of two windows is noise

/**
 * @typedef {object} Budget
 * @property {string} title
 * @property {number} samples
 * @property {'integers' | 'floats'} kind
 * @property {'at most' | 'at least'} side
 * @property {number | null} limit null: reported only
 * @property {string} unit
 * @property {'scrape' | 'latency' | 'workers' | 'idle'} measure the measurement it applies to
 * @property {number} [workers] how many it is about; default 4
 * @property {(result: object) => number | null} value null: it was not measured
 * @property {{floor: import('../shared/floors.js').Floor, value: (result: object) => number | null}} [gate]
 */

/** @returns {Budget[]} */
function allBudgets() {
  return [
    ...sectionBudgets(),
    ...cpuBudgets(),
    ...wholeScrapeBudgets(),
    ...wallBudgets(),
    ...ipcBudgets(),
    ...latencyBudgets(),
    ...groupBudgets(),
    pushBudget(),
    workerBudget(),
  ];
}

function sectionBudgets() {
  const primary = (samples, path, limit, kinds) =>
    kinds.map(kind =>
      sectionBudget(`primary: longest synchronous section, ${path}`, 'primarySections', {
        samples,
        path,
        kind,
        limit,
      }),
    );
  const worker = (samples, limit, kinds) =>
    kinds.map(kind =>
      sectionBudget('worker: longest synchronous section', 'workerSections', { samples, kind, limit }),
    );
  return [
    ...primary(10_000, 'bytes', 1, KINDS),
    ...primary(10_000, 'gzip', 1, KINDS),
    ...primary(100_000, 'bytes', 3, KINDS),
    ...primary(100_000, 'gzip', 1, KINDS),
    ...worker(10_000, 0.5, KINDS),
    ...worker(100_000, 2, KINDS),
    ...worker(1_000_000, 15, ['integers']),
  ];
}

function sectionBudget(title, key, { samples, path = 'bytes', kind, limit }) {
  const sections = lanes => sectionsOf(laneOf(lanes, OURS, path), key);
  const value = lanes => valueOf(sections(lanes), median);
  const undisturbed = lanes => valueOf(sections(lanes), values => quantile(values, SECTION_QUANTILE));
  const where = key === 'primarySections' ? `primary section, ${path}` : 'worker section';
  const gate = gateOf(`${where}, ${samples} samples`, undisturbed);
  return { title, samples, kind, side: 'at most', limit, unit: 'ms', measure: 'scrape', value, gate };
}

/** Undefined if there is no floor. */
function gateOf(name, value) {
  const floor = floorOf('cluster', name);
  return floor && { floor, value };
}

function cpuBudgets() {
  const budget = (samples, path, limit) =>
    [REFERENCE, SUCCESSOR].flatMap(rival =>
      KINDS.map(kind => ({
        ...ratioBudget(`primary: CPU of its main thread, ${path}`, 'primaryMain', { path, rival }),
        samples,
        kind,
        limit: rival === REFERENCE ? limit : 1,
        gate: ratioGate(`primary CPU, ${path}, ${samples} samples`, 'primaryMain', { path, rival }),
      })),
    );
  return [
    ...budget(10_000, 'bytes', 30),
    ...budget(10_000, 'string', 30),
    ...budget(100_000, 'bytes', 300),
    ...budget(100_000, 'string', 25),
  ];
}

/** The total of a scrape. */
function wholeScrapeBudgets() {
  const budget = (samples, key, title, path, limit) =>
    [REFERENCE, SUCCESSOR].flatMap(rival =>
      KINDS.map(kind => ({
        ...ratioBudget(title, key, { path, rival }),
        samples,
        kind,
        limit: rival === REFERENCE ? limit : 1,
        gate: ratioGate(`${title}, ${samples} samples`, key, { path, rival }),
      })),
    );
  return [
    ...budget(10_000, 'allProcesses', 'CPU of all processes, string', 'string', 1),
    ...budget(10_000, 'peakPrimary', 'peak memory of the primary, http', 'http', 1),
    ...budget(100_000, 'wall', 'wall time, string', 'string', 25),
    ...budget(100_000, 'allProcesses', 'CPU of all processes, string', 'string', 20),
    ...budget(100_000, 'peakPrimary', 'peak memory of the primary, http', 'http', 3),
  ];
}

/**
 * How many times less of something this library needs.
 *
 * @param {string} title
 * @param {string} key of a run's figure
 * @param {{path: string, rival: string}} compared
 */
function ratioBudget(title, key, compared) {
  const rival = clientNamed(compared.rival).title;
  const value = lanes => ratioOf(lanes, key, compared);
  return { title: `${title}, against ${rival}`, side: 'at least', unit: 'x less', measure: 'scrape', value };
}

function ratioGate(name, key, compared) {
  const suffix = compared.rival === REFERENCE ? '' : `, against ${compared.rival}`;
  return gateOf(`${name}${suffix}`, lanes => ratioOf(lanes, key, compared));
}

function wallBudgets() {
  const budget = (samples, kind, limit) => {
    const value = lanes => valueOf(runsOf(laneOf(lanes, OURS, 'http'), 'wall'), median);
    return {
      title: 'wall time, http',
      samples,
      kind,
      side: 'at most',
      limit,
      unit: 'ms',
      measure: 'scrape',
      value,
    };
  };
  return [
    budget(10_000, 'integers', 15),
    budget(10_000, 'floats', 20),
    budget(100_000, 'integers', 80),
    budget(100_000, 'floats', 150),
  ];
}

function ipcBudgets() {
  const title = 'IPC per worker and scrape, both directions';
  return [10_000, 100_000].flatMap(samples =>
    KINDS.map(kind => {
      const value = lanes =>
        valueOf(
          oursOnPathsOfPrimary(lanes).flatMap(lane => runsOf(lane, 'ipcPerWorker')),
          largest,
        );
      const gate = gateOf(`IPC, ${samples} samples`, value);
      return {
        title,
        samples,
        kind,
        side: 'at most',
        limit: 767,
        unit: 'bytes',
        measure: 'scrape',
        value,
        gate,
      };
    }),
  );
}

function latencyBudgets() {
  const title = 'P99 scraped every second / unscraped';
  return [
    { samples: 10_000, limit: 1.1 },
    { samples: 100_000, limit: null },
  ].map(({ samples, limit }) => {
    const value = ({ lanes }) => latencyRatio(lanes.find(({ client }) => client === OURS));
    return { title, samples, kind: 'integers', side: 'at most', limit, unit: 'x', measure: 'latency', value };
  });
}

/** The page from a worker, and groups. Of each, the difference to what a cluster's primary serves. */
function groupBudgets() {
  const at10k = { samples: 10_000, kind: 'integers', side: 'at most' };
  const scrape = (title, limit, unit, value) => ({ ...at10k, title, limit, unit, measure: 'scrape', value });
  const medianOf = (lanes, path, key) => valueOf(runsOf(laneOf(lanes, OURS, path), key), median);
  return [
    scrape("page from a worker: CPU of the primary's main thread, more than bytes", 0.2, 'ms', lanes =>
      combined(
        (own, worker) => worker - own,
        [medianOf(lanes, 'bytes', 'primaryMain'), medianOf(lanes, 'worker', 'primaryMain')],
      ),
    ),
    scrape('page from a worker: its longest section while it reads the page, median', 2, 'ms', lanes =>
      valueOf(pageSections(lanes), median),
    ),
    scrape('page from a worker: the longest of all these sections', null, 'ms', lanes =>
      valueOf(pageSections(lanes), largest),
    ),
    scrape('page from a member of a group: wall time against http', 1.5, 'x', lanes =>
      combined(
        (own, group) => group / own,
        [medianOf(lanes, 'http', 'wall'), medianOf(lanes, 'group', 'wall')],
      ),
    ),
    {
      ...at10k,
      title: 'idle member of a group: CPU, more than in no group',
      limit: 0.1,
      unit: '% of a CPU',
      measure: 'idle',
      value: ({ group, alone }) => median(group) - median(alone),
    },
  ];
}

/** The primary only asks and answers; the thread builds and sends. */
function pushBudget() {
  const medianOf = (lanes, path) => valueOf(runsOf(laneOf(lanes, OURS, path), 'primaryMain'), median);
  return {
    title: "push of remote write: CPU of the primary's main thread, against http",
    samples: 10_000,
    kind: 'integers',
    side: 'at most',
    limit: 1,
    unit: 'x',
    measure: 'scrape',
    value: lanes => combined((http, push) => push / http, [medianOf(lanes, 'http'), medianOf(lanes, 'push')]),
  };
}

/** With few workers, most of the primary's CPU time does not depend on how many they are. */
function workerBudget() {
  const value = lanes =>
    valueOf(
      runsOf(laneOf(lanes, OURS, 'bytes'), 'primaryMain').map(cpu => cpu / MANY_WORKERS),
      median,
    );
  return {
    title: "CPU of the primary's main thread, bytes, for each worker",
    samples: 2000,
    kind: 'integers',
    side: 'at most',
    limit: 0.15,
    unit: 'ms',
    measure: 'workers',
    workers: MANY_WORKERS,
    value,
    gate: gateOf(`primary CPU for each of ${MANY_WORKERS} workers`, value),
  };
}

/** Of each scrape, in ms. */
function pageSections(lanes) {
  const byName = runsOf(laneOf(lanes, OURS, 'worker'), 'sectionsByName');
  return byName.flatMap(sections => sections['worker: worker:page'] ?? []);
}

/** Null if one of the values is missing. */
function combined(combine, values) {
  return values.includes(null) ? null : combine(...values);
}

/**
 * @typedef {object} Verdict
 * @property {Budget} budget
 * @property {number | null} value
 * @property {boolean | null} holds null: not measured, or reported only
 * @property {{value: number | null, limit: number, holds: boolean} | null} gate
 */

/**
 * The verdicts on the budgets of one scenario.
 *
 * @param {{measure: string, scenario: {samples: number, workers: number, kind: string}}} step
 * @param {object} result of the step
 * @returns {Verdict[]}
 */
function judge({ measure, scenario }, result) {
  return allBudgets()
    .filter(budget => budget.measure === measure && (budget.workers ?? 4) === scenario.workers)
    .filter(budget => budget.samples === scenario.samples && budget.kind === scenario.kind)
    .map(budget => verdictOf(budget, result));
}

function verdictOf(budget, result) {
  const value = budget.value(result);
  const holds = budget.limit === null || value === null ? null : isWithin(value, budget.limit, budget.side);
  return { budget, value, holds, gate: budget.gate ? gateVerdict(budget, result) : null };
}

function gateVerdict({ gate }, result) {
  const value = gate.value(result);
  return { value, limit: gate.floor.atMost ?? gate.floor.atLeast, holds: isHeld(gate.floor, value) };
}

function isWithin(value, limit, side) {
  return side === 'at most' ? value <= limit : value >= limit;
}

/**
 * P99 of the requests with a scrape every second against that without, each as the median of all segments.
 *
 * @param {import('./latency.js').LatencyLane | undefined} lane
 * @returns {number | null}
 */
function latencyRatio(lane) {
  if (!lane?.scraped.length) return null;
  const [scraped, unscraped] = [lane.scraped, lane.unscraped].map(loads =>
    median(loads.map(({ p99 }) => p99)),
  );
  return scraped / unscraped;
}

/**
 * How many times less this library needs than another client, which only has strings.
 *
 * @param {import('./scenario.js').Lane[]} lanes
 * @param {string} key of a run's figure
 * @param {{path: string, rival: string}} compared
 * @returns {number | null}
 */
function ratioOf(lanes, key, { path, rival }) {
  const theirs = valueOf(runsOf(laneOf(lanes, rival, 'string'), key), median);
  const own = valueOf(runsOf(laneOf(lanes, OURS, path), key), median);
  return theirs === null || own === null ? null : theirs / Math.max(own, SMALLEST);
}

/**
 * All sections of a lane, in whichever run and worker.
 *
 * @param {import('./scenario.js').Lane | undefined} lane
 * @param {'primarySections' | 'workerSections'} key
 * @returns {number[]} empty when the library reported none
 */
function sectionsOf(lane, key) {
  return runsOf(lane, key)
    .flat()
    .filter(duration => duration !== null);
}

function laneOf(lanes, client, path) {
  return lanes.find(lane => lane.client === client && lane.path === path);
}

/** A worker that is asked for the page sends a request for it, too. */
function oursOnPathsOfPrimary(lanes) {
  return lanes.filter(({ client, path }) => client === OURS && path !== 'worker' && path !== 'group');
}

function runsOf(lane, key) {
  return lane ? lane.runs.map(run => run[key]) : [];
}

function valueOf(values, statistic) {
  return values.length > 0 ? statistic(values) : null;
}

function largest(values) {
  return Math.max(...values);
}

module.exports = { judge, latencyRatio, sectionsOf };
