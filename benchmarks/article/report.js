'use strict';

// Results as tables for the terminal, the page and the document.

const { count, number, table } = require('../shared/table.js');
const { summarise } = require('../shared/statistics.js');
const { COMPARISONS, compare, judgeClaims } = require('./comparison.js');
const { roundTitle } = require('./plan.js');
const { RUNS, runNamed, titleOf } = require('./runs.js');
const { FIGURES } = require('./segment.js');

const COMPARED = ['p99', 'p995', 'p999'];

/** @typedef {import('./measurement.js').MeasuredRound} MeasuredRound */
/** @typedef {{head: string[], rows: string[][]}} Table */

/**
 * @param {MeasuredRound} measured
 * @returns {Table} the article's, a row for each run
 */
function runsTable({ round, segments }) {
  const head = [
    'run',
    ...FIGURES.map(({ title }) => `${title}, ms`),
    'requests',
    'failed',
    'scrape, ms',
    'scrapes failed',
  ];
  const rows = RUNS.map(({ key, title, scraped }) => ({
    title,
    scraped,
    own: segments.filter(({ run }) => run === key),
  })).filter(({ own }) => own.length > 0);
  return { head, rows: rows.map(row => runRow(row, round)) };
}

function runRow({ title, scraped, own }) {
  const total = key => own.reduce((sum, segment) => sum + segment[key], 0);
  const scrapes = own.flatMap(segment => segment.scrapes);
  const failures = own.flatMap(segment => segment.failures);
  return [
    title,
    ...FIGURES.map(({ key }) => spread(own.map(({ figures }) => figures[key]))),
    count(total('requests')),
    count(total('failed')),
    scrapes.length > 0 ? spread(scrapes) : '–',
    scraped ? `${failures.length} of ${scrapes.length + failures.length}` : '–',
  ];
}

function spread(values) {
  const { median, min, max } = summarise(values);
  return min === max ? number(median) : `${number(median)} (${number(min)}–${number(max)})`;
}

/**
 * @param {MeasuredRound[]} rounds
 * @returns {Table} scraped / unscraped
 */
function ratiosTable(rounds) {
  const head = ['scraped / unscraped', '', ...COMPARISONS.map(({ title }) => title)];
  const rows = rounds.flatMap(measured =>
    FIGURES.filter(({ key }) => COMPARED.includes(key)).map(({ key, title }) => [
      roundTitle(measured.round),
      title,
      ...COMPARISONS.map(comparison => ratioText(compare(measured, comparison, key))),
    ]),
  );
  return { head, rows };
}

/** Fewer than three ratios give no interval. */
function ratioText(ratio) {
  if (!ratio) return '–';
  const { median, low, high, ratios } = ratio;
  const certainty = ratios.length < 3 ? `only ${ratios.length}` : `${number(low)}–${number(high)}`;
  return `${number(median)}x (${certainty})`;
}

/**
 * @param {MeasuredRound[]} rounds
 * @returns {Table} the budgets with verdicts; without rows if none was measured
 */
function claimsTable(rounds) {
  const head = ['ours, scraped / unscraped', '', 'promised', 'measured', 'verdict', '15.1.3'];
  const titles = Object.fromEntries(FIGURES.map(({ key, title }) => [key, title]));
  const rows = judgeClaims(rounds).map(({ round, figure, atMost, ratio, stock }) => [
    roundTitle(round.round),
    titles[figure],
    `<= ${atMost}x`,
    ratioText(ratio),
    ratio.median <= atMost ? 'holds' : 'MISSED',
    ratioText(stock),
  ]);
  return { head, rows };
}

/**
 * @param {MeasuredRound} measured
 * @returns {string[]} the conditions of the measurement, and its errors
 */
function remarks({ round, rate, saturation, expositionBytes, segments, wrongTotals }) {
  const saturated = Object.entries(saturation).map(
    ([client, perSecond]) => `${titleOf(client)} ${count(Math.round(perSecond))}`,
  );
  const failures = segments.flatMap(segment =>
    segment.failures.map(failure => `${runNamed(segment.run).title}: ${failure}`),
  );
  return [
    `${count(rate)} requests/s for all; saturated at (requests/s): ${saturated.join(', ')}.`,
    `${round.workers} workers with ${count(Math.round(expositionBytes / 1000))} KB of exposition each; repetitions: ${round.repetitions}, each with ${round.seconds} s of every run; scraped ${round.gzip ? 'with gzip where it is offered: ours and the static page' : 'without compression'}.`,
    ...othersTexts(segments),
    ...countedTexts(failures).map(text => `FAILED scrape, ${text}`),
    ...Object.entries(wrongTotals).map(
      ([client, problems]) => `WRONG after all segments, ${titleOf(client)}: ${problems.join('; ')}`,
    ),
  ];
}

function othersTexts(segments) {
  const known = segments.map(({ others }) => others).filter(others => others !== null);
  if (known.length === 0) return [];
  const { median, max } = summarise(known);
  return [
    `Other programs used ${number(median)} processors meanwhile (median of all runs; at most ${number(max)}).`,
  ];
}

function countedTexts(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, times]) => (times > 1 ? `${text} (${times} times)` : text));
}

/**
 * @param {MeasuredRound} measured
 * @returns {string} Markdown
 */
function describeRound(measured) {
  return [
    `### ${roundTitle(measured.round)}`,
    ...remarks(measured).map(remark => `- ${remark}`),
    markdown(runsTable(measured)),
  ].join('\n\n');
}

/**
 * @param {MeasuredRound[]} rounds
 * @returns {string} Markdown: the claims, then scraped compared with unscraped
 */
function describeRatios(rounds) {
  const tables = [claimsTable(rounds), ratiosTable(rounds)];
  return tables
    .filter(({ rows }) => rows.length > 0)
    .map(markdown)
    .join('\n\n');
}

function markdown({ head, rows }) {
  return table(head, rows);
}

module.exports = { claimsTable, describeRatios, describeRound, ratiosTable, remarks, runsTable };
