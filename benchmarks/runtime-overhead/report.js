'use strict';

// Formats the measurements as Markdown tables that are aligned in a terminal, too.

const { median, quantile, summarise } = require('../shared/statistics.js');
const { number, table } = require('../shared/table.js');
const { BASELINE, LANES } = require('./lanes.js');
const { RATE, WORKERS } = require('./measurement.js');
const { intervalOfMedian } = require('./paired-interval.js');

/** @typedef {import('./measurement.js').MeasuredCluster} MeasuredCluster */
/** @typedef {import('./measurement.js').Window} Window */

const COLLECTED = LANES.filter(({ key }) => key !== BASELINE);
const MOST_OF_A_CPU = 1; // per cent
const USUAL_INTERVAL = 15; // seconds between two scrapes, in the configuration that Prometheus comes with
const LONGEST_SECTION = 1; // milliseconds

/**
 * @type {{title: string, unit: string, kind: 'fixed' | 'saturated' | 'idle' | 'resting',
 *   of: (window: Window) => number, isCompared?: boolean}[]}
 */
const FIGURES = [
  {
    title: 'saturated: requests a second',
    unit: '1/s',
    kind: 'saturated',
    of: ({ answered, seconds }) => answered / seconds,
  },
  { title: 'saturated: CPU of a request', unit: 'µs', kind: 'saturated', of: microsecondsOfRequest },
  {
    title: `${RATE} requests a second: CPU of a request`,
    unit: 'µs',
    kind: 'fixed',
    of: microsecondsOfRequest,
  },
  { title: 'no requests: CPU of a second', unit: 'ms', kind: 'idle', of: millisecondsOfSecond },
  {
    title: 'no requests, no scrapes: CPU of a second',
    unit: 'ms',
    kind: 'resting',
    of: millisecondsOfSecond,
    // Without default metrics it is nearly zero.
    isCompared: false,
  },
];

function microsecondsOfRequest({ cpu, answered }) {
  return (cpu * 1e3) / answered;
}

function millisecondsOfSecond({ cpu, seconds }) {
  return cpu / seconds;
}

/** Per cent of one CPU per worker, including a share of the primary's. */
function shareOfCpu(window) {
  return millisecondsOfSecond(window) / 10 / WORKERS;
}

/**
 * @param {MeasuredCluster[]} clusters
 * @returns {string} Markdown
 */
function reportOf(clusters) {
  return [figuresTable(clusters), addedTable(clusters), sectionsTable(clusters), verdictOf(clusters)].join(
    '\n\n',
  );
}

function figuresTable(clusters) {
  const head = ['median (least–most)', 'unit', ...LANES.map(({ title }) => title)];
  head.push(...COLLECTED.map(({ title }) => `${title} / none`));
  const rows = FIGURES.map(({ title, unit, kind, of, isCompared = true }) => [
    title,
    unit,
    ...LANES.map(({ key }) => range(windowsOf(clusters, kind, key).map(of))),
    ...COLLECTED.map(({ key }) =>
      isCompared ? interval(paired(clusters, kind, key, (lane, none) => of(lane) / of(none))) : '–',
    ),
  ]);
  return table(head, rows);
}

/** @type {{title: string, added: (clusters: MeasuredCluster[], lane: string) => number[]}[]} */
const SITUATIONS = [
  { title: 'no requests', added: (clusters, lane) => added(clusters, 'idle', lane) },
  {
    title: `no requests, a scrape each ${USUAL_INTERVAL} s (computed)`,
    added: (clusters, lane) => {
      const resting = added(clusters, 'resting', lane);
      return added(clusters, 'idle', lane).map(
        (scraped, i) => resting[i] + (scraped - resting[i]) / USUAL_INTERVAL,
      );
    },
  },
  { title: `${RATE} requests a second`, added: (clusters, lane) => added(clusters, 'fixed', lane) },
];

/** The CPU usage that default metrics add, which does not depend on the cost of a request. */
function addedTable(clusters) {
  const head = ['added, % of a CPU for each worker', ...COLLECTED.map(({ title }) => title)];
  const rows = SITUATIONS.map(situation => [
    situation.title,
    ...COLLECTED.map(({ key }) => interval(situation.added(clusters, key))),
  ]);
  return table(head, rows);
}

function added(clusters, kind, lane) {
  return paired(clusters, kind, lane, (with_, without) => shareOfCpu(with_) - shareOfCpu(without));
}

function sectionsTable(clusters) {
  const head = ['section of a worker, ms', ...LANES.map(({ title }) => title)];
  const rows = [
    ['hooks of the default metrics', 'hooks'],
    ['records of collections', 'collections'],
    ['capture and writing of the snapshot, for comparison', 'capture'],
  ].map(([title, key]) => [
    title,
    ...LANES.map(({ key: lane }) => {
      const lengths = sectionsOf(clusters, lane).map(sections => sections[key]);
      return `${number(median(lengths))} (P90 ${number(quantile(lengths, 0.9))}, longest ${number(Math.max(...lengths))})`;
    }),
  ]);
  const first = clusters.flatMap(({ firstSections }) => firstSections.map(({ hooks }) => hooks));
  return `${table(head, rows)}\n\nHooks at the first scrape of a process, all: ${range(first)} ms.`;
}

/** Compares the measurements with the budgets. */
function verdictOf(clusters) {
  const lengths = sectionsOf(clusters, 'runtime').map(({ hooks, collections }) =>
    Math.max(hooks, collections),
  );
  const lines = SITUATIONS.map(situation => {
    const { low, high } = intervalOfMedian(situation.added(clusters, 'runtime'));
    const verdict =
      high < MOST_OF_A_CPU ? 'held' : low > MOST_OF_A_CPU ? 'MISSED' : 'not decided by this run';
    return `- less than ${MOST_OF_A_CPU} % of a CPU for each worker, all, ${situation.title}: ${verdict}`;
  });
  const first = clusters.flatMap(({ firstSections }) => firstSections.map(({ hooks }) => hooks));
  lines.push(
    sectionVerdict('at a scrape, all, nine times out of ten', quantile(lengths, 0.9)),
    sectionVerdict('at a scrape, all, the longest', Math.max(...lengths)),
    sectionVerdict('at the first scrape of a process, all, median', median(first)),
  );
  return lines.join('\n');
}

function sectionVerdict(what, milliseconds) {
  const verdict = milliseconds < LONGEST_SECTION ? 'held' : 'MISSED';
  return `- no section over ${LONGEST_SECTION} ms ${what}: ${verdict} (${number(milliseconds)} ms)`;
}

function windowsOf(clusters, kind, lane) {
  return clusters.flatMap(cluster => cluster[kind].filter(window => window.lane === lane));
}

function sectionsOf(clusters, lane) {
  return clusters.flatMap(({ sections }) => sections.filter(section => section.lane === lane));
}

/** Compares windows of one block, which were measured within seconds of each other in the same processes. */
function paired(clusters, kind, lane, compare) {
  const baseline = new Map(windowsOf(clusters, kind, BASELINE).map(window => [window.block, window]));
  return windowsOf(clusters, kind, lane).map(window => compare(window, baseline.get(window.block)));
}

function range(values) {
  const { median: middle, min, max } = summarise(values);
  return `${number(middle)} (${number(min)}–${number(max)})`;
}

function interval(values) {
  const { median: middle, low, high } = intervalOfMedian(values);
  return `${signed(middle)} [${signed(low)}, ${signed(high)}]`;
}

function signed(value) {
  return value.toFixed(value < 0.1 && value > -0.1 ? 3 : 2);
}

module.exports = { reportOf };
