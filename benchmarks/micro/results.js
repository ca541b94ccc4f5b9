'use strict';

const fs = require('node:fs');
const path = require('node:path');

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
 * @param {{id: string, clients: string[]}[]} plan all cases, with the clients that each can be measured with
 * @returns {Results & {measuredAgain: string[]}} the newest complete results; cases that were measured
 *   again later, with all these clients and not with --short, replace theirs
 * @throws {Error} if there are none
 */
function newestCompleteResults(plan) {
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
    const byId = new Map(results.outcomes.map(outcome => [outcome.id, outcome]));
    const measured = plan
      .filter(({ id, clients }) => clients.every(client => client in (byId.get(id)?.runs ?? {})))
      .map(({ id }) => /** @type {import('./budgets.js').Outcome} */ (byId.get(id)));
    if (measured.length === plan.length) {
      const outcomes = measured.map(outcome => again.get(outcome.id) ?? outcome);
      return { ...results, outcomes, measuredAgain: [...again.keys()].sort() };
    }
    for (const outcome of measured) if (!again.has(outcome.id)) again.set(outcome.id, outcome);
  }
  throw new Error('there are no results of a whole run yet: npm run bench');
}

module.exports = { writeResults, newestCompleteResults };
