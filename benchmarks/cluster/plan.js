'use strict';

// The measurements, their order, and how often each is repeated.

const { CLIENTS, OURS } = require('../shared/clients.js');

const ALL = CLIENTS.map(({ key }) => key);
const PRIMARY_PATHS = ['string', 'bytes', 'http', 'gzip'];
const KINDS = ['integers', 'floats'];
const WORKERS = [2, 4];

// smaller scrapes need more repetitions because of noise, and more of them fit into the time
const REPETITIONS = {
  1000: { warmUps: 10, runs: 15 },
  10_000: { warmUps: 10, runs: 11 },
  100_000: { warmUps: 3, runs: 5 },
};
// a curve needs many sizes; three repetitions are enough because its ends are far apart
const GROWTH_WARM_UPS = { 1000: 10, 5000: 10, 20_000: 5, 50_000: 3, 100_000: 2, 200_000: 2 };
const GROWTH_WORKERS = [2, 4, 8];
// of a large machine: as many as asked for, and half as many, and so on
const MANY = { samples: 2000, least: 4, most: 1024 };
const TIME_LIMITS = { 1000: 30_000, 10_000: 60_000, 100_000: 180_000 };

/**
 * @typedef {object} Step
 * @property {'scrape' | 'latency' | 'growth' | 'workers' | 'idle'} measure
 * @property {string} title
 * @property {number} seconds rough guess of what it takes, for the progress report only
 * @property {import('./scenario.js').Scenario | import('./latency.js').LatencyScenario |
 *   import('./idle.js').IdleScenario} scenario
 */

/**
 * @param {object} options
 * @param {boolean} options.short
 * @param {boolean} [options.growth] true: only the growth curves; false: without them; default: after the
 *   rest, unless a filter leaves out sizes
 * @param {number} [options.samples] a filter, as the next three
 * @param {number} [options.workers] more than 4: instead of all else, how the cost grows to so many
 * @param {string} [options.kind]
 * @param {string[]} [options.clients]
 * @param {boolean} options.latency
 * @param {number} [options.runs] instead of the plan's
 * @returns {Step[]} those of the growth after all others
 */
function planFor(options) {
  const steps = allSteps(options);
  return steps.filter(step => isWanted(step, options)).map(step => adapted(step, options));
}

function allSteps({ short, growth, samples, workers, kind }) {
  if (growth) return growthPlan();
  if (workers > MANY.least) return workersPlan(Math.min(workers, MANY.most));
  if (short) return shortPlan();
  const isEverything = [samples, workers, kind].every(filter => filter === undefined);
  return isEverything && growth !== false ? [...fullPlan(), ...growthPlan()] : fullPlan();
}

function shortPlan() {
  const steps = KINDS.map(kind =>
    scrapeStep({ samples: 10_000, workers: 4, kind, warmUps: 6, runs: 5, timeLimit: 30_000 }),
  );
  return [...steps, idleStep({ settle: 2, seconds: 8 })];
}

function fullPlan() {
  const steps = [1000, 10_000, 100_000].flatMap(samples =>
    WORKERS.flatMap(workers =>
      KINDS.map(kind =>
        scrapeStep({ samples, workers, kind, ...REPETITIONS[samples], timeLimit: TIME_LIMITS[samples] }),
      ),
    ),
  );
  steps.push(
    millionStep(),
    idleStep({ settle: 10, seconds: 40 }),
    latencyStep(10_000, 9),
    latencyStep(100_000, 5),
  );
  return steps;
}

/** Pages from workers and members have budgets with one size only, and would double the processes. */
function scrapeStep(given) {
  const { samples, workers, kind, runs } = given;
  const isWhole = samples === 10_000 && workers === 4 && kind === 'integers';
  const scenario = { ...given, paths: given.paths ?? (isWhole ? undefined : PRIMARY_PATHS) };
  const title = `${samples.toLocaleString('en')} samples x ${workers} workers, ${kind}`;
  const seconds = 5 + runs * (1 + (samples * workers) / 25_000);
  return { measure: 'scrape', title, seconds, scenario: { clients: ALL, ...scenario } };
}

/** Ours alone: the other clients cannot send such a string. */
function millionStep() {
  const size = { samples: 1_000_000, workers: 4, kind: 'integers', warmUps: 3, runs: 5, timeLimit: 90_000 };
  const step = scrapeStep({ clients: [OURS], paths: ['bytes'], ...size });
  return { ...step, seconds: 60 };
}

/**
 * From small to large for each number of workers, so that clients that have become too slow are left out of
 * the next size.
 */
function growthPlan() {
  return GROWTH_WORKERS.flatMap(workers =>
    Object.entries(GROWTH_WARM_UPS).map(([size, warmUps]) => growthStep(Number(size), workers, warmUps)),
  );
}

function growthStep(samples, workers, warmUps) {
  const size = { samples, workers, kind: 'integers', paths: ['bytes'], gaps: false };
  const step = scrapeStep({ ...size, warmUps, runs: 3, timeLimit: 120_000 });
  const title = `growth, ${step.title}`;
  return { ...step, measure: 'growth', title, seconds: 3 + (samples * workers) / 20_000 };
}

function workersPlan(most) {
  const counts = [];
  for (let workers = most; workers >= MANY.least; workers = Math.floor(workers / 2)) counts.unshift(workers);
  return counts.map(workers => {
    const size = { samples: MANY.samples, workers, kind: 'integers', paths: ['bytes'], gaps: false };
    const step = scrapeStep({ ...size, warmUps: 5, runs: 5, timeLimit: 120_000 });
    return { ...step, measure: 'workers', seconds: 5 + workers * 2 };
  });
}

function latencyStep(samples, segments) {
  const scenario = {
    clients: ALL,
    samples,
    workers: 4,
    kind: 'integers',
    segments,
    seconds: 4,
    timeLimit: 240_000,
  };
  const title = `latency of requests, ${samples.toLocaleString('en')} samples x 4 workers`;
  return { measure: 'latency', title, seconds: 15 + segments * 2 * 9, scenario };
}

function idleStep({ settle, seconds }) {
  const scenario = { clients: [OURS], samples: 10_000, workers: 4, kind: 'integers', settle, seconds };
  return { measure: 'idle', title: 'idle processes', seconds: 5 + settle + seconds, scenario };
}

function isWanted({ measure, scenario }, { samples, workers, kind, clients, latency }) {
  if (measure === 'latency' && !latency) return false;
  if (clients && !scenario.clients.some(client => clients.includes(client))) return false;
  const agrees = (wanted, value) => wanted === undefined || wanted === value;
  return (
    agrees(samples, scenario.samples) &&
    (measure === 'workers' || agrees(workers, scenario.workers)) &&
    agrees(kind, scenario.kind)
  );
}

function adapted(step, { clients, runs }) {
  const scenario = { ...step.scenario };
  if (clients) scenario.clients = scenario.clients.filter(client => clients.includes(client));
  if (runs && scenario.runs !== undefined) scenario.runs = runs;
  return { ...step, scenario };
}

module.exports = { planFor };
