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
 * Keeps everything measured.
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
 * @returns {Results} the newest that have all of them, with all libraries
 * @throws {Error} where there are none
 */
function newestCompleteResults(ids) {
  const files = fs.existsSync(DIRECTORY) ? fs.readdirSync(DIRECTORY) : [];
  for (const file of files
    .filter(name => name.startsWith(PREFIX))
    .sort()
    .reverse()) {
    const results = JSON.parse(fs.readFileSync(path.join(DIRECTORY, file), 'utf8'));
    if (isComplete(results, ids)) return results;
  }
  throw new Error('there are no results of a whole run yet: npm run bench');
}

function isComplete({ outcomes }, ids) {
  const measured = new Set(
    outcomes.filter(({ runs }) => CLIENTS.every(({ key }) => key in runs)).map(({ id }) => id),
  );
  return ids.every(id => measured.has(id));
}

module.exports = { writeResults, newestCompleteResults };
