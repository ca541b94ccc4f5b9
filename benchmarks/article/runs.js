'use strict';

// The runs of the article's table; the same for a third library, and for a cluster without metrics.

const { OURS, REFERENCE, clientNamed } = require('../shared/clients.js');

const BARE = 'bare';

/**
 * @typedef {object} Run
 * @property {string} key
 * @property {string} client see clients.js, or `bare`: no metrics at all
 * @property {boolean} scraped
 * @property {string} title
 */

/**
 * @type {Run[]} in the order of the article; runs that are compared are next to each other
 */
const RUNS = [
  { key: 'bare', client: BARE, scraped: false, title: 'no metrics' },
  { key: 'stock', client: REFERENCE, scraped: false, title: '1: 15.1.3, unscraped' },
  { key: 'stock-scraped', client: REFERENCE, scraped: true, title: '2: 15.1.3, scraped' },
  { key: 'prometheus-io', client: 'prometheus-io', scraped: false, title: '0.16.1, unscraped' },
  { key: 'prometheus-io-scraped', client: 'prometheus-io', scraped: true, title: '0.16.1, scraped' },
  { key: 'ours', client: OURS, scraped: false, title: '3: ours, unscraped' },
  { key: 'ours-scraped', client: OURS, scraped: true, title: '4: ours, scraped' },
  { key: 'ours-again', client: OURS, scraped: false, title: '5: ours, unscraped again' },
];

const CLIENT_KEYS = [...new Set(RUNS.map(({ client }) => client))];

/**
 * @param {string} key
 * @returns {Run}
 */
function runNamed(key) {
  const run = RUNS.find(candidate => candidate.key === key);
  if (!run) throw new Error(`unknown run ${key}`);
  return run;
}

/**
 * @param {string} client
 * @returns {string} how tables and drawings name it
 */
function titleOf(client) {
  return client === BARE ? 'no metrics' : clientNamed(client).title;
}

module.exports = { BARE, CLIENT_KEYS, RUNS, runNamed, titleOf };
