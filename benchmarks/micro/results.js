'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { CLIENTS } = require('../shared/clients.js');

const DIRECTORY = path.join(__dirname, '..', 'results');
const PREFIX = 'micro-';

/**
 * @typedef {object} Results
 * @property {string} date ISO
 * @property {string} machine
 * @property {string} loadAtEnd
 * @property {object} options
 * @property {import('./budgets.js').Outcome[]} outcomes
 */

/**
 * Stores all measurements.
 *
 * @param {Results} results
 * @returns {string} the file
 */
function writeResults(results) {
  const file = path.join(DIRECTORY, `${PREFIX}${results.date.replaceAll(':', '-')}.json`);
  fs.mkdirSync(DIRECTORY, { recursive: true });
  fs.writeFileSync(file, JSON.stringify(results, null, 1));
  return file;
}

/**
 * @param {string[]} ids of all cases
 * @returns {Results & {measuredAgain: string[]}} the newest complete results; cases that were measured
 *   again later, with all libraries and not with --short, replace theirs
 * @throws {Error} if there are none
 */
function newestCompleteResults(ids) {
  const files = fs.existsSync(DIRECTORY) ? fs.readdirSync(DIRECTORY) : [];
  const newestFirst = files
    .filter(name => name.startsWith(PREFIX))
    .sort()
    .reverse();
  /** @type {Map<string, import('./budgets.js').Outcome>} */
  const again = new Map();
  for (const file of newestFirst) {
    const results = JSON.parse(fs.readFileSync(path.join(DIRECTORY, file), 'utf8'));
    if (results.options.short) continue;
    const measured = results.outcomes.filter(({ runs }) => CLIENTS.every(({ key }) => key in runs));
    const known = new Set(measured.map(({ id }) => id));
    if (ids.every(id => known.has(id))) {
      const outcomes = measured.map(outcome => again.get(outcome.id) ?? outcome);
      return { ...results, outcomes, measuredAgain: [...again.keys()].sort() };
    }
    for (const outcome of measured) if (!again.has(outcome.id)) again.set(outcome.id, outcome);
  }
  throw new Error('there are no results of a whole run yet: npm run bench');
}

module.exports = { writeResults, newestCompleteResults };
