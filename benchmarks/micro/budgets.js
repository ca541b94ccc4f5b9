'use strict';

// The budgets of this library, and the verdict of a run on each. benchmarks/floors.json has the floors that
// `--short` enforces, under the names that gateOf() returns.

const { CLIENTS, OURS, REFERENCE } = require('../shared/clients.js');
const { floorOf, isHeld } = require('../shared/floors.js');
const { median } = require('../shared/statistics.js');

/**
 * @typedef {object} Budget
 * @property {string} id of the case
 * @property {string} figure
 * @property {string} [against] the client to compare with; without one, the figure itself is the budget's
 * @property {number} [atLeast] how many times less ours has to be
 * @property {number} [atMost] in the figure's unit
 */

/** The lead over 15.1.3 that this library needs; over 0.16.1, any lead is enough. */
const AHEAD = [
  { id: 'inc-labels/reused-2k', figure: 'time', atLeast: 3 },
  { id: 'inc-labels/reused-100k', figure: 'time', atLeast: 1.5 },
  { id: 'inc-labels/fresh-2k', figure: 'time', atLeast: 1.3 },
  { id: 'observe/reused-2k', figure: 'time', atLeast: 3 },
  { id: 'bound-children/inc', figure: 'time', atLeast: 25 },
  { id: 'bound-children/observe', figure: 'time', atLeast: 10 },
  { id: 'new-series/1m', figure: 'longest', atLeast: 1 },
  { id: 'metrics-text/integers-100k', figure: 'wall', atLeast: 3 },
  { id: 'metrics-text/integers-100k', figure: 'gap', atLeast: 50 },
  { id: 'metrics-text/floats-100k', figure: 'wall', atLeast: 3 },
  { id: 'metrics-text/floats-100k', figure: 'gap', atLeast: 50 },
  { id: 'native-histograms/observe', figure: 'time', atLeast: 10 },
  { id: 'native-histograms/observe-both', figure: 'time', atLeast: 10 },
  { id: 'native-histograms/cluster', figure: 'wall', atLeast: 5 },
  { id: 'memory/counter-series', figure: 'bytes', atLeast: 2 },
  { id: 'memory/histogram-label-set', figure: 'bytes', atLeast: 2 },
  { id: 'memory/unlabelled', figure: 'bytes', atLeast: 1 },
];

/** @type {Budget[]} */
const BUDGETS = [
  ...AHEAD.flatMap(budget =>
    CLIENTS.filter(({ key }) => key !== OURS).map(({ key }) => ({
      ...budget,
      against: key,
      atLeast: key === REFERENCE ? budget.atLeast : 1,
    })),
  ),
  { id: 'new-series/1m', figure: 'longest', atMost: 5 },
  { id: 'metrics-text/integers-100k', figure: 'gap', atMost: 5 },
  { id: 'snapshot/thousand-metrics', figure: 'section', atMost: 1 },
  { id: 'snapshot/summaries-20k', figure: 'section', atMost: 1 },
  { id: 'native-histograms/observe', figure: 'time', atMost: 15 },
  { id: 'native-histograms/observe-both', figure: 'time', atMost: 25 },
  { id: 'native-histograms/series', figure: 'bytes', atMost: 700 },
  { id: 'native-histograms/page', figure: 'bytes', against: REFERENCE, atLeast: 6 },
  { id: 'native-histograms/page', figure: 'bytes', atMost: 2_578_000 },
  { id: 'native-histograms/page', figure: 'gap', atMost: 1 },
  { id: 'native-histograms/section', figure: 'share', atMost: 1 },
  { id: 'native-histograms/cluster', figure: 'gap', atMost: 2 },
  ...['inc', 'child', 'observe'].map(key => ({ id: `idle-series/${key}`, figure: 'share', atMost: 1.02 })),
];

/**
 * @param {Budget} budget
 * @returns {string} how benchmarks/floors.json names it
 */
function gateOf({ id, figure, against }) {
  return against ? `${id} ${figure} against ${against}` : `${id} ${figure}`;
}

/**
 * @param {string} gate
 * @returns {Budget}
 * @throws {Error} if there is no such budget
 */
function budgetOfGate(gate) {
  const budget = BUDGETS.find(candidate => gateOf(candidate) === gate);
  if (!budget) throw new Error(`floors.json has a gate that no budget has: ${gate}`);
  return budget;
}

/**
 * The measurements of one case.
 *
 * @typedef {object} Outcome
 * @property {string} id
 * @property {string} title
 * @property {Record<string, string>} figures units
 * @property {Record<string, (Record<string, number> | null)[]>} runs by client, one entry a repetition; null:
 *   it failed
 * @property {Record<string, string>} errors by client: why one or more failed
 */

/**
 * @typedef {object} Verdict
 * @property {Budget} budget
 * @property {number | null} value null: not measured
 * @property {boolean | null} holds
 * @property {{floor: import('../shared/floors.js').Floor, value: number | null, holds: boolean} | null} gate
 */

/**
 * @param {Outcome} outcome
 * @returns {Verdict[]}
 */
function judge(outcome) {
  return BUDGETS.filter(({ id }) => id === outcome.id).map(budget => {
    const value = budget.against
      ? ratioOf(outcome, budget.figure, budget.against)
      : ownValue(outcome, budget);
    const holds = value === null ? null : isHeld(budget, value);
    const floor = floorOf('micro', gateOf(budget));
    return { budget, value, holds, gate: floor ? gateVerdict(floor, budget, outcome, value) : null };
  });
}

function gateVerdict(floor, budget, outcome, value) {
  const gated = budget.against ? value : leastOf(outcome, budget);
  return { floor, value: gated, holds: isHeld(floor, gated) };
}

function ownValue(outcome, { figure }) {
  const values = valuesOf(outcome, OURS, figure);
  return values.length > 0 ? median(values) : null;
}

/**
 * Other programs only make a call longer, so the lowest of all runs is nearest to the library's own time.
 */
function leastOf(outcome, { figure }) {
  const values = valuesOf(outcome, OURS, figure);
  return values.length > 0 ? Math.min(...values) : null;
}

/**
 * How many times less this library needs than another client: the median over the repetitions. Both were
 * measured within seconds.
 *
 * @param {Outcome} outcome
 * @param {string} figure
 * @param {string} client
 * @returns {number | null} null: one of them was not measured
 */
function ratioOf({ runs }, figure, client) {
  const own = runs[OURS] ?? [];
  const theirs = runs[client] ?? [];
  const ratios = own.flatMap((run, repetition) => {
    const rival = theirs[repetition];
    return run && rival ? [rival[figure] / run[figure]] : [];
  });
  return ratios.length > 0 ? median(ratios) : null;
}

/**
 * @param {Outcome} outcome
 * @param {string} client
 * @param {string} figure
 * @returns {number[]} of the repetitions that did not fail
 */
function valuesOf({ runs }, client, figure) {
  return (runs[client] ?? []).flatMap(run => (run ? [run[figure]] : []));
}

module.exports = { BUDGETS, budgetOfGate, gateOf, judge, ratioOf, valuesOf };
