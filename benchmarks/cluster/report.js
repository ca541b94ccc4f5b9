'use strict';

// Results as Markdown tables that also line up in a terminal.

const { latencyRatio, sectionsOf } = require('./budgets.js');
const { CLIENTS, OURS, clientNamed } = require('../shared/clients.js');
const { summarise } = require('../shared/statistics.js');
const { count, number, table } = require('../shared/table.js');

/** @typedef {import('./scenario.js').Lane} Lane */

/** Rows of a scrape table: title, value(s) of a run, and whether a ratio to the other clients makes sense. */
const ROWS = [
  { title: 'wall time, ms', key: 'wall', ratio: true },
  { title: 'CPU primary, main thread, ms', key: 'primaryMain', ratio: true },
  { title: 'CPU primary, whole process, ms', key: 'primaryProcess', ratio: true },
  { title: 'CPU worker, main thread, ms', key: 'workerMain', ratio: true },
  { title: 'CPU worker, whole process, ms', key: 'workerProcess', ratio: true },
  { title: 'CPU all processes, ms', key: 'allProcesses', ratio: true },
  { title: 'longest section, primary, ms', key: 'primarySections' },
  { title: 'longest section, worker, ms', key: 'workerSections' },
  { title: 'longest gap, primary, ms', key: 'primaryGap', ratio: true },
  { title: '… unscraped', key: 'primaryIdleGap' },
  { title: 'longest gap, any worker, ms', key: 'workerGap', ratio: true },
  { title: '… unscraped', key: 'workerIdleGap' },
  { title: 'IPC to workers, bytes', key: 'ipcToWorkers' },
  { title: 'IPC from workers, bytes', key: 'ipcFromWorkers', ratio: true },
  { title: 'IPC per worker, both ways, bytes', key: 'ipcPerWorker', ratio: true },
  { title: 'open descriptors, primary', key: 'descriptors' },
  { title: 'files in the directory', key: 'files' },
  { title: 'peak memory, primary, MiB', key: 'peakPrimary', ratio: true },
  { title: 'peak memory, largest worker, MiB', key: 'peakWorker', ratio: true },
  { title: 'body, bytes', key: 'bodyBytes' },
];

/**
 * @param {Lane[]} lanes of one scenario
 * @returns {string}
 */
function scrapeTable(lanes) {
  const head = ['median (least–most)', ...lanes.map(laneTitle)];
  const rows = ROWS.map(row => [row.title, ...lanes.map(lane => cell(lane, row, lanes))]);
  rows.push(['repetitions', ...lanes.map(({ runs }) => String(runs.length))]);
  rows.push(['bodies right', ...lanes.map(({ bodies, failures }) => bodiesRight(bodies, failures))]);
  return table(head, rows);
}

function laneTitle({ client, path }) {
  return `${clientNamed(client).title} ${path}`;
}

function cell(lane, { key, ratio }, lanes) {
  const values = valuesOf(lane, key);
  if (values.length === 0) return '–';
  const { median, min, max } = summarise(values);
  const text = min === max ? number(median) : `${number(median)} (${number(min)}–${number(max)})`;
  return ratio && lane.client === OURS ? `${text} ${ratios(median, key, lanes)}`.trimEnd() : text;
}

function valuesOf(lane, key) {
  if (key.endsWith('Sections')) return sectionsOf(lane, key);
  return lane.runs.map(run => run[key]).filter(value => value !== null);
}

/** How many times less than each other client, in the order of the columns. */
function ratios(median, key, lanes) {
  const rivals = lanes.filter(({ client, runs }) => client !== OURS && runs.length > 0);
  return rivals.map(rival => times(summarise(valuesOf(rival, key)).median / median)).join(' ');
}

function times(ratio) {
  return ratio > 0 && ratio < 1e6 ? `${number(ratio)}x` : '–';
}

function bodiesRight(bodies, failures) {
  return failures.length === 0 ? `all ${bodies}` : `NO: ${failures.length} failures`;
}

/**
 * @param {{rate: number, saturation: number, lanes: import('./latency.js').LatencyLane[]}} result
 * @returns {string}
 */
function latencyTable({ rate, saturation, lanes }) {
  const head = [`${rate} requests/s (saturation ${Math.round(saturation)})`];
  head.push(...lanes.map(({ client }) => clientNamed(client).title));
  const row = (title, segments, key) => [
    title,
    ...lanes.map(lane => spread(lane[segments].map(load => load[key]))),
  ];
  const errors = ({ unscraped, scraped }) =>
    [...unscraped, ...scraped].reduce((total, load) => total + load.errors, 0);
  return table(head, [
    row('P50 unscraped, ms', 'unscraped', 'p50'),
    row('P50 scraped every second, ms', 'scraped', 'p50'),
    row('P99 unscraped, ms', 'unscraped', 'p99'),
    row('P99 scraped every second, ms', 'scraped', 'p99'),
    ['P99 scraped / unscraped', ...lanes.map(lane => number(latencyRatio(lane)))],
    row('longest unscraped, ms', 'unscraped', 'longest'),
    row('longest scraped, ms', 'scraped', 'longest'),
    ['failed requests', ...lanes.map(lane => String(errors(lane)))],
    ['scrapes answered', ...lanes.map(({ scrapes }) => String(scrapes))],
    ['bodies right', ...lanes.map(({ scrapes, failures }) => bodiesRight(scrapes, failures))],
  ]);
}

/** @param {import('./idle.js').IdleResult} result */
function idleTable({ group, alone }) {
  const share = value => value.toFixed(3);
  const row = (title, values) => {
    const { median, min, max } = summarise(values);
    return [title, `${share(median)} (${share(min)}–${share(max)})`];
  };
  return table(
    ['CPU of an idle process, % of one CPU', 'median (least–most)'],
    [row('member of a group', group), row('in no group', alone)],
  );
}

function spread(values) {
  if (values.length === 0) return '–';
  const { median, min, max } = summarise(values);
  return `${number(median)} (${number(min)}–${number(max)})`;
}

/**
 * @param {import('./budgets.js').Verdict[]} verdicts
 * @param {{gates: boolean}} options whether gates are enforced in this run
 * @returns {string}
 */
function budgetTable(verdicts, { gates }) {
  const head = ['budget', 'samples', 'values', 'ours', 'budget', 'verdict'];
  if (gates) head.push('gate (with margin)');
  const rows = verdicts.map(verdict => {
    const { budget, value, holds, gate } = verdict;
    const limit =
      budget.limit === null ? 'reported' : `${budget.side} ${number(budget.limit)} ${budget.unit}`;
    const shown = value === null ? 'not measured' : `${number(value)} ${budget.unit}`;
    const row = [budget.title, count(budget.samples), budget.kind, shown, limit, verdictText(value, holds)];
    return gates ? [...row, gateText(gate, budget)] : row;
  });
  return table(head, rows);
}

function verdictText(value, holds) {
  if (holds === null) return value === null ? 'not measured' : '–';
  return holds ? 'pass' : 'MISSED';
}

function gateText(gate, { side }) {
  if (!gate) return 'none';
  const value = gate.value === null ? 'not measured' : number(gate.value);
  return `${value}, ${side} ${number(gate.limit)}: ${gate.holds ? 'pass' : 'FAIL'}`;
}

/**
 * @param {Lane[]} lanes
 * @returns {string[]} lines: the longest run of each section, and the failures
 */
function remarks(lanes) {
  const sections = lanes.flatMap(lane => {
    const longest = longestByName(lane.runs);
    const texts = Object.entries(longest).map(([name, milliseconds]) => `${name} ${number(milliseconds)} ms`);
    return texts.length > 0 ? [`longest of each section, ${laneTitle(lane)}: ${texts.join(', ')}`] : [];
  });
  return [...sections, ...failuresOf(lanes)];
}

function longestByName(runs) {
  const longest = {};
  for (const { sectionsByName } of runs) {
    for (const [name, milliseconds] of Object.entries(sectionsByName)) {
      longest[name] = Math.max(longest[name] ?? 0, milliseconds);
    }
  }
  return longest;
}

/**
 * @param {{client: string, path?: string, failures: string[]}[]} lanes
 * @returns {string[]}
 */
function failuresOf(lanes) {
  return lanes.flatMap(({ client, path = '', failures }) =>
    failures.slice(0, 3).map(failure => `FAILED ${clientNamed(client).title} ${path}: ${failure}`),
  );
}

const LEGEND =
  `Columns: ${CLIENTS.map(({ title, paths }) => paths.map(path => `${title} ${path}`).join(', ')).join(', ')}. ` +
  '"Nx Mx": 15.1.3 needs N times as much as ours, and 0.16.1 M times as much.';

module.exports = { scrapeTable, latencyTable, idleTable, budgetTable, remarks, failuresOf, LEGEND };
