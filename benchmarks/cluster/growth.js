'use strict';

// How the cost of a scrape grows with samples and workers: the sizes measured for each client, and the
// curves.

const { CLIENTS, clientNamed } = require('../shared/clients.js');
const { median } = require('../shared/statistics.js');
const { count, number, table } = require('../shared/table.js');

const SLOWEST = 10_000; // ms of a scrape; a slower client is not measured with more samples

/**
 * The panels of the drawing.
 *
 * @typedef {'wall' | 'primaryMain' | 'allProcesses'} Cost
 */

/**
 * @typedef {object} Point
 * @property {number} samples of each worker
 * @property {number} wall ms
 * @property {number} primaryMain CPU of the primary's main thread, ms
 * @property {number} allProcesses CPU of all processes, ms
 */

/**
 * @typedef {object} Curve
 * @property {string} client see clients.js
 * @property {number} workers
 * @property {Point[]} points medians, from few samples to many
 */

/**
 * @typedef {object} Growth
 * @property {Curve[]} curves those that have a point
 * @property {string[]} notes curves that end early, with the reason, and scrapes that failed
 */

/** @typedef {{step: import('./plan.js').Step, result: import('./scenario.js').Lane[]}} Outcome */

/** Leaves out clients that were too slow, or did not answer, with fewer samples and as many workers. */
class GrowthLimits {
  #ended = new Set();

  /**
   * @param {import('./plan.js').Step} step
   * @returns {import('./plan.js').Step}
   */
  applyTo(step) {
    const { clients, workers } = step.scenario;
    const left = clients.filter(client => !this.#ended.has(curveKey(client, workers)));
    return { ...step, scenario: { ...step.scenario, clients: left } };
  }

  /**
   * @param {import('./plan.js').Step} step
   * @param {import('./scenario.js').Lane[]} lanes what it showed
   */
  note({ scenario }, lanes) {
    for (const lane of lanes) {
      if (endsAt(lane)) this.#ended.add(curveKey(lane.client, scenario.workers));
    }
  }
}

function curveKey(client, workers) {
  return `${client} ${workers}`;
}

function endsAt(lane) {
  return lane.runs.length === 0 || costOf(lane, 'wall') > SLOWEST;
}

function costOf({ runs }, cost) {
  return median(runs.map(run => run[cost]));
}

/**
 * @param {Outcome[]} outcomes of the growth steps, with fewer samples before more
 * @returns {Growth}
 */
function growthOf(outcomes) {
  const workerCounts = [...new Set(outcomes.map(({ step }) => step.scenario.workers))];
  const candidates = CLIENTS.flatMap(({ key }) => workerCounts.map(workers => ({ client: key, workers })));
  const curves = candidates.map(candidate => ({ ...candidate, points: pointsOf(candidate, outcomes) }));
  return {
    curves: curves.filter(({ points }) => points.length > 0),
    notes: candidates.flatMap(candidate => notesOn(candidate, outcomes)),
  };
}

function pointsOf(curve, outcomes) {
  return lanesOf(curve, outcomes)
    .filter(({ lane }) => lane.runs.length > 0)
    .map(({ samples, lane }) => pointOf(samples, lane));
}

function notesOn(curve, outcomes) {
  const largest = Math.max(...outcomes.map(({ step }) => step.scenario.samples));
  return lanesOf(curve, outcomes)
    .map(({ samples, lane }) => noteOn(lane, samples, largest))
    .filter(note => note !== '')
    .map(note => `${curveTitle(curve)}: ${note}`);
}

function lanesOf({ client, workers }, outcomes) {
  return outcomes
    .filter(({ step }) => step.scenario.workers === workers)
    .map(({ step, result }) => ({
      samples: step.scenario.samples,
      lane: result.find(lane => lane.client === client),
    }))
    .filter(({ lane }) => lane);
}

function pointOf(samples, lane) {
  const costs = ['wall', 'primaryMain', 'allProcesses'].map(cost => [cost, costOf(lane, cost)]);
  return { samples, ...Object.fromEntries(costs) };
}

function noteOn(lane, samples, largest) {
  const { runs, failures } = lane;
  const size = `${count(samples)} samples`;
  if (runs.length === 0) return `no scrape of ${size} came through (${failures[0] ?? 'no time was left'})`;
  const notes =
    failures.length > 0 ? [`failures with ${size}: ${failures.length} (the first: ${failures[0]})`] : [];
  if (endsAt(lane) && samples < largest) {
    notes.push(`not measured above ${size}, where a scrape took ${number(costOf(lane, 'wall') / 1e3)} s`);
  }
  return notes.join('; ');
}

/**
 * @param {{client: string, workers: number}} curve
 * @returns {string} how drawings and tables name it
 */
function curveTitle({ client, workers }) {
  return `${clientNamed(client).title}, ${workers} workers`;
}

/**
 * @param {Growth} growth
 * @returns {string} Markdown: a row for each curve, a column for each size, with all three costs in a cell
 */
function growthTable({ curves }) {
  const sizes = [...new Set(curves.flatMap(({ points }) => points.map(({ samples }) => samples)))];
  sizes.sort((one, other) => one - other);
  const head = ['wall time / CPU primary, main thread / CPU all processes, ms', ...sizes.map(count)];
  const rows = curves.map(curve => [
    curveTitle(curve),
    ...sizes.map(size => cell(curve.points.find(({ samples }) => samples === size))),
  ]);
  return table(head, rows);
}

function cell(point) {
  if (!point) return '–';
  return [point.wall, point.primaryMain, point.allProcesses].map(number).join(' / ');
}

module.exports = { GrowthLimits, growthOf, growthTable, curveTitle };
