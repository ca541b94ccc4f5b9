'use strict';

// The files of results: all measurements of a run as JSON, named by their date.

const fs = require('node:fs');
const path = require('node:path');

const DIRECTORY = path.join(__dirname, '..', 'results');

/**
 * @param {string} name of the program
 * @param {{date: string}} results `date` in ISO form
 * @returns {string} the file
 */
function writeResults(name, results) {
  const file = path.join(DIRECTORY, `${name}-${results.date.replaceAll(':', '-')}.json`);
  fs.mkdirSync(DIRECTORY, { recursive: true });
  fs.writeFileSync(file, JSON.stringify(results, null, 1));
  return file;
}

/**
 * @param {string} name of the program
 * @returns {Generator<any>} the results of all runs, the newest first
 */
function* resultsOf(name) {
  const files = fs.existsSync(DIRECTORY) ? fs.readdirSync(DIRECTORY) : [];
  const own = files.filter(file => file.startsWith(`${name}-`));
  for (const file of own.sort().reverse())
    yield JSON.parse(fs.readFileSync(path.join(DIRECTORY, file), 'utf8'));
}

module.exports = { DIRECTORY, writeResults, resultsOf };
