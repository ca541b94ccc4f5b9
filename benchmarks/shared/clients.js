'use strict';

// The three measured libraries, and the differences in their use.

const path = require('node:path');

const OURS = 'ours';
const REFERENCE = 'prom-client';
const SUCCESSOR = 'prometheus-io';

/**
 * @typedef {object} Client
 * @property {string} key how results name it
 * @property {string} title how tables name it
 * @property {string} module what `require` takes
 * @property {string[]} paths the ways to its scrape body that are measured: `string` is `clusterMetrics()`,
 *   `bytes` is `metricsHandler` with a response that goes nowhere, `http` and `gzip` are the same over HTTP
 *   on loopback, `worker` is the cluster's page over HTTP from one worker after the other, `group` the same
 *   from the members of a group, `push` is remote write
 */

/** @type {Client[]} */
const CLIENTS = [
  { key: REFERENCE, title: '15.1.3', module: 'prom-client', paths: ['string'] },
  { key: SUCCESSOR, title: '0.16.1', module: '@prometheus-io/client', paths: ['string'] },
  {
    key: OURS,
    title: 'ours',
    module: path.join(__dirname, '..', '..', 'index.js'),
    paths: ['string', 'bytes', 'http', 'gzip', 'worker', 'group', 'push'],
  },
];

/**
 * @param {string} key
 * @returns {Client}
 */
function clientNamed(key) {
  const client = CLIENTS.find(candidate => candidate.key === key);
  if (!client) throw new Error(`unknown client ${key}; known: ${CLIENTS.map(each => each.key).join(', ')}`);
  return client;
}

/**
 * @param {string} key
 * @returns {string} a name for readers who do not know the versions
 */
function fullTitleOf(key) {
  const { title, module } = clientNamed(key);
  return key === OURS ? 'this library' : `${module} ${title}`;
}

/**
 * @param {string} key
 * @returns {any} what `require` returns for the library
 */
function loadLibrary(key) {
  return require(clientNamed(key).module);
}

/**
 * @param {string} key
 * @param {any} library of that key
 * @returns {any} its class for clusters: 0.16.1 calls it ClusterRegistry and has the old name as a deprecated
 *   alias
 */
function clusterClassOf(key, library) {
  return key === SUCCESSOR ? library.ClusterRegistry : library.AggregatorRegistry;
}

/**
 * Loads a library and creates the object that aggregates. Workers need it too: with the two other clients, a
 * worker answers only after it has created one.
 *
 * @param {string} key
 * @returns {{library: object, aggregator: object}}
 */
function loadClient(key) {
  const library = loadLibrary(key);
  const Aggregator = clusterClassOf(key, library);
  return { library, aggregator: new Aggregator() };
}

/**
 * The handler of a scrape, as each library's manual shows it: with bytes if the library offers bytes.
 *
 * @param {string} key
 * @param {{library: any, aggregator: any}} client as loadClient() returns it
 * @returns {import('node:http').RequestListener}
 */
function handlerOf(key, { library, aggregator }) {
  if (key === OURS) return library.metricsHandler(aggregator);
  return async (_request, response) => {
    try {
      const text = await aggregator.clusterMetrics();
      response.setHeader('Content-Type', aggregator.contentType);
      response.end(text);
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error?.message ?? error));
    }
  };
}

module.exports = {
  CLIENTS,
  OURS,
  REFERENCE,
  SUCCESSOR,
  clientNamed,
  clusterClassOf,
  fullTitleOf,
  handlerOf,
  loadClient,
  loadLibrary,
};
