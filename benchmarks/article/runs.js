'use strict';

// The runs of the article's table; the same for a third library, and for a cluster without metrics whose
// primary answers scrapes with a fixed page: what the page alone costs, which is the limit of any library.

const { OURS, REFERENCE, clientNamed } = require('../shared/clients.js');

const BARE = 'bare';

/**
 * @typedef {object} Run
 * @property {string} key
 * @property {string} client see clients.js, or `bare`: no metrics library
 * @property {boolean} scraped
 * @property {string} title
 */

/**
 * @type {Run[]} in the order of the article; runs that are compared are next to each other
 */
const RUNS = [
  { key: 'bare', client: BARE, scraped: false, title: 'no metrics' },
  { key: 'bare-scraped', client: BARE, scraped: true, title: 'static page, scraped' },
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
 * @param {string} client
 * @returns {boolean} whether its manual shows an endpoint that compresses, or it is the static page
 */
function offersGzip(client) {
  return client === OURS || client === BARE;
}

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

module.exports = { BARE, CLIENT_KEYS, RUNS, offersGzip, runNamed, titleOf };
