'use strict';

const fs = require('node:fs');
const path = require('node:path');

const DIRECTORY = path.join(__dirname, '..', 'results');
const PREFIX = 'runtime-overhead-';

/**
 * @typedef {object} Results
 * @property {string} date ISO
 * @property {string} machine
 * @property {number} seconds of a window
 * @property {import('./measurement.js').MeasuredCluster[]} clusters
 */

/**
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
 * @returns {Results | undefined} those of the newest run; undefined before the first
 */
function newestResults() {
  const files = fs.existsSync(DIRECTORY) ? fs.readdirSync(DIRECTORY) : [];
  const newest = files
    .filter(name => name.startsWith(PREFIX))
    .sort()
    .at(-1);
  return newest && JSON.parse(fs.readFileSync(path.join(DIRECTORY, newest), 'utf8'));
}

module.exports = { writeResults, newestResults };
