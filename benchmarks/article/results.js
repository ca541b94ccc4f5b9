'use strict';

// Files of results: everything measured as JSON, a page to look at, and its drawing.

const fs = require('node:fs');
const path = require('node:path');
const prettier = require('prettier');
const { drawInto } = require('../pictures/chart.js');
const { documentNumbers } = require('../pictures/stored.js');
const { replaceBetween } = require('../shared/marked-part.js');
const { mediansOf, roundsSpec } = require('./drawing.js');
const { withHeadline } = require('./headline.js');
const { pageOf } = require('./page.js');
const { ROUND_KEYS } = require('./plan.js');
const { describeRatios, describeRound } = require('./report.js');

const FORMAT = 1;
const DOCUMENT = path.join(__dirname, '..', '..', 'docs', 'internals', 'benchmark-article.md');
const README = path.join(__dirname, '..', '..', 'README.md');
/** @type {[string, string]} */
const MARKS = ['<!-- results: written by --document -->', '<!-- end of results -->'];

/**
 * @typedef {object} Results
 * @property {string} date when the last round was measured, ISO 8601
 * @property {string} machine
 * @property {import('./measurement.js').MeasuredRound[]} rounds
 */

/**
 * @param {Results} results
 * @param {string} directory created if it is missing
 * @returns {Promise<string[]>} the files written
 */
async function writeResults(results, directory) {
  const stem = path.join(directory, `article-${results.date.replaceAll(':', '-')}`);
  const [json, html] = [`${stem}.json`, `${stem}.html`];
  fs.mkdirSync(directory, { recursive: true });
  fs.writeFileSync(json, JSON.stringify({ format: FORMAT, ...results }));
  const drawings = await drawInto(`${stem}.svg`, roundsSpec(mediansOf(results)));
  fs.writeFileSync(html, pageOf(results, drawings.map(file => fs.readFileSync(file, 'utf8')).join('')));
  return [json, html, ...drawings];
}

/**
 * Merges the rounds of several files; if several files have a round, the newest counts.
 *
 * @param {string[]} files
 * @returns {Results}
 * @throws {Error} if a file has another format, or comes from another machine or version of Node.js
 */
function mergeResults(files) {
  const all = files.map(readResults).sort((one, other) => (one.date < other.date ? -1 : 1));
  const rounds = new Map(all.flatMap(results => results.rounds.map(round => [round.round.key, round])));
  const machines = new Set(all.map(({ machine }) => machine));
  if (machines.size > 1) throw new Error(`not of one machine: ${[...machines].join(' and ')}`);
  const { date, machine } = all.at(-1);
  return { date, machine, rounds: ROUND_KEYS.filter(key => rounds.has(key)).map(key => rounds.get(key)) };
}

function readResults(file) {
  const { format, ...results } = JSON.parse(fs.readFileSync(file, 'utf8'));
  if (format !== FORMAT)
    throw new Error(`${file} does not hold results of this benchmark in format ${FORMAT}`);
  return results;
}

/**
 * Writes the tables and drawings of docs/, and the table at the top of README.md.
 *
 * @param {Results} results
 * @returns {Promise<string[]>} the files written
 */
async function writeDocument(results) {
  const medians = mediansOf(results);
  fs.writeFileSync(DOCUMENT, await withResults(fs.readFileSync(DOCUMENT, 'utf8'), results));
  fs.writeFileSync(README, withHeadline(fs.readFileSync(README, 'utf8'), medians));
  return [DOCUMENT, README, ...(await documentNumbers('article', medians))];
}

/**
 * @param {string} text Markdown with the two marks
 * @param {Results} results
 * @returns {Promise<string>} the text with new results between the marks
 */
async function withResults(text, results) {
  const { rounds } = results;
  const parts = [
    `${results.date.slice(0, 10)}, ${results.machine}.`,
    describeRatios(rounds),
    ...rounds.map(describeRound),
  ];
  const style = await prettier.resolveConfig(DOCUMENT);
  const part = await prettier.format(parts.join('\n\n'), {
    ...style,
    parser: 'markdown',
    proseWrap: 'always',
  });
  return replaceBetween(text, MARKS, part.trimEnd());
}

module.exports = { mergeResults, withResults, writeDocument, writeResults };
