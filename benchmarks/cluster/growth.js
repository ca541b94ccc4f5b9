'use strict';

// How the cost of a scrape grows with samples, or with workers: the sizes measured for each client, and the
// curves.

const { CLIENTS, clientNamed } = require('../shared/clients.js');
const { median } = require('../shared/statistics.js');
const { count, number, table } = require('../shared/table.js');

const SLOWEST = 10_000; // ms of a scrape; a slower client is not measured with more samples

/**
 * What grows, by the measure of a step. `key` is its name in a scenario and a point.
 *
 * @typedef {{key: 'samples' | 'workers', title: string, label: string}} Axis
 */

/** @type {Record<'growth' | 'workers', Axis>} */
const AXES = {
  growth: { key: 'samples', title: 'Cost of a scrape by samples and workers', label: 'samples per worker' },
  workers: { key: 'workers', title: 'Cost of a scrape by workers, 2,000 samples each', label: 'workers' },
};

/** Figures of a run that a point has the medians of. The first three are in the table. */
const COSTS = [
  'wall',
  'primaryMain',
  'allProcesses',
  'files',
  'descriptors',
  'ipcPerWorker',
  'peakPrimary',
  'peakWorker',
];

/**
 * @typedef {object} Point
 * @property {number} [samples] of each worker, if these grow
 * @property {number} [workers] if these grow
 * @property {number} wall ms
 * @property {number} primaryMain CPU of the primary's main thread, ms
 * @property {number} allProcesses CPU of all processes, ms
 * @property {number | null} [files] these five as in a run, see scenario.js; null: the client has none
 * @property {number | null} [descriptors]
 * @property {number | null} [ipcPerWorker]
 * @property {number} [peakPrimary]
 * @property {number} [peakWorker]
 */

/**
 * @typedef {object} Curve
 * @property {string} client see clients.js
 * @property {number} [workers] unless these grow
 * @property {Point[]} points medians, from few samples or workers to many
 */

/**
 * @typedef {object} Growth
 * @property {Axis} [axis] default samples
 * @property {Curve[]} curves those that have a point
 * @property {string[]} notes curves that end early, with the reason, and scrapes that failed
 */

/** @typedef {{step: import('./plan.js').Step, result: import('./scenario.js').Lane[]}} Outcome */

/** Leaves out clients that were too slow, or did not answer, earlier in the same curve. */
class GrowthLimits {
  #ended = new Set();

  /**
   * @param {import('./plan.js').Step} step
   * @returns {import('./plan.js').Step}
   */
  applyTo(step) {
    const { clients } = step.scenario;
    const left = clients.filter(client => !this.#ended.has(curveKey(client, step)));
    return { ...step, scenario: { ...step.scenario, clients: left } };
  }

  /**
   * @param {import('./plan.js').Step} step
   * @param {import('./scenario.js').Lane[]} lanes what it showed
   */
  note(step, lanes) {
    for (const lane of lanes) {
      if (endsAt(lane)) this.#ended.add(curveKey(lane.client, step));
    }
  }
}

function curveKey(client, { measure, scenario }) {
  return measure === 'workers' ? client : `${client} ${scenario.workers}`;
}

function endsAt(lane) {
  return lane.runs.length === 0 || costOf(lane, 'wall') > SLOWEST;
}

/** Null if a run did not measure it. */
function costOf({ runs }, cost) {
  const values = runs.map(run => run[cost] ?? null);
  return values.includes(null) ? null : median(values);
}

/**
 * @param {Outcome[]} outcomes of the steps of one measure, with fewer samples or workers before more
 * @returns {Growth}
 */
function growthOf(outcomes) {
  const axis = AXES[outcomes[0].step.measure];
  const isByWorkers = axis.key === 'workers';
  const workerCounts = isByWorkers
    ? [undefined]
    : [...new Set(outcomes.map(({ step }) => step.scenario.workers))];
  const candidates = CLIENTS.flatMap(({ key }) => workerCounts.map(workers => ({ client: key, workers })));
  const curves = candidates.map(candidate => ({ ...candidate, points: pointsOf(candidate, outcomes, axis) }));
  return {
    axis,
    curves: curves.filter(({ points }) => points.length > 0),
    notes: candidates.flatMap(candidate => notesOn(candidate, outcomes, axis)),
  };
}

function pointsOf(curve, outcomes, { key }) {
  return lanesOf(curve, outcomes, key)
    .filter(({ lane }) => lane.runs.length > 0)
    .map(({ size, lane }) => pointOf(key, size, lane));
}

function notesOn(curve, outcomes, { key }) {
  const largest = Math.max(...outcomes.map(({ step }) => step.scenario[key]));
  return lanesOf(curve, outcomes, key)
    .map(({ size, lane }) => noteOn(lane, key, { size, largest }))
    .filter(note => note !== '')
    .map(note => `${curveTitle(curve)}: ${note}`);
}

function lanesOf({ client, workers }, outcomes, key) {
  return outcomes
    .filter(({ step }) => workers === undefined || step.scenario.workers === workers)
    .map(({ step, result }) => ({
      size: step.scenario[key],
      lane: result.find(lane => lane.client === client),
    }))
    .filter(({ lane }) => lane);
}

function pointOf(key, size, lane) {
  const costs = COSTS.map(cost => [cost, costOf(lane, cost)]);
  return { [key]: size, ...Object.fromEntries(costs) };
}

function noteOn(lane, key, { size, largest }) {
  const { runs, failures } = lane;
  const text = `${count(size)} ${key}`;
  if (runs.length === 0) return `no scrape of ${text} came through (${failures[0] ?? 'no time was left'})`;
  const notes =
    failures.length > 0 ? [`failures with ${text}: ${failures.length} (the first: ${failures[0]})`] : [];
  if (endsAt(lane) && size < largest) {
    notes.push(`not measured above ${text}, where a scrape took ${number(costOf(lane, 'wall') / 1e3)} s`);
  }
  return notes.join('; ');
}

/**
 * @param {{client: string, workers?: number}} curve
 * @returns {string} how drawings and tables name it
 */
function curveTitle({ client, workers }) {
  const { title } = clientNamed(client);
  return workers === undefined ? title : `${title}, ${workers} workers`;
}

/**
 * @param {Growth} growth
 * @returns {string} Markdown: a row for each curve, a column for each size, with all three costs in a cell
 */
function growthTable({ curves, axis: { key } = AXES.growth }) {
  const sizes = [...new Set(curves.flatMap(({ points }) => points.map(point => point[key])))];
  sizes.sort((one, other) => one - other);
  const head = ['wall time / CPU primary, main thread / CPU all processes, ms', ...sizes.map(count)];
  const rows = curves.map(curve => [
    curveTitle(curve),
    ...sizes.map(size => cell(curve.points.find(point => point[key] === size))),
  ]);
  return table(head, rows);
}

function cell(point) {
  if (!point) return '–';
  return [point.wall, point.primaryMain, point.allProcesses].map(number).join(' / ');
}

module.exports = { AXES, GrowthLimits, growthOf, growthTable, curveTitle };
