'use strict';

// Runs in a process that is in no cluster: its AggregatorRegistry shows the metrics of the process itself.

const { coalesceByRegistry } = require('../registry/coalesce');
const { scrapePages } = require('../registry/scrape');
const { aggregateJson } = require('./aggregate-json');
const { registriesOfAllCopies } = require('./package-copies');

/**
 * @param {any} registry an AggregatorRegistry
 * @returns {any[]} the registries with metrics that it shows
 */
function ownRegistries(registry) {
  const all = new Set([registry, ...registriesOfAllCopies()]);
  return [...all].filter(each => each.getMetricsAsArray().length > 0);
}

/**
 * @param {any} registry an AggregatorRegistry
 * @returns {Promise<any[]>} the same, without two metrics of one name
 */
async function shownRegistries(registry) {
  const registries = ownRegistries(registry);
  const names = registries.flatMap(each =>
    each.getMetricsAsArray().map((/** @type {any} */ metric) => metric.name),
  );
  if (new Set(names).size === names.length) return registries;
  // Added up as in a cluster.
  return [aggregateJson(await Promise.all(registries.map(each => each.getMetricsAsJSON())))];
}

/** The page of an AggregatorRegistry, which concurrent callers share. */
const ownPage = coalesceByRegistry(async (registry, formats) =>
  scrapePages(await shownRegistries(registry), formats),
);

module.exports = { ownRegistries, shownRegistries, ownPage };
