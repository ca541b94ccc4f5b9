'use strict';

// Runs in a process that belongs to no cluster: its AggregatorRegistry shows the metrics of the process
// itself.

const { coalesceByRegistry } = require('../registry/coalesce');
const { distinctMetrics } = require('../registry/distinct-metrics');
const { scrapePages } = require('../registry/scrape');
const { hasNativeHistograms } = require('../registry/metric-view');
const { withFacts } = require('../exposition/page-bytes');
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
 * @returns {Promise<any[]>} the same, with one metric for each name
 */
async function shownRegistries(registry) {
  const registries = ownRegistries(registry);
  const names = registries.flatMap(each => each.getMetricsAsArray().map(nameOf));
  if (new Set(names).size === names.length) return registries;
  // Added up as in a cluster.
  const shown = distinctMetrics(registries, each => each.getMetricsAsArray());
  const lists = Array.from(shown, async ([each, metrics]) => {
    const others = each.getMetricsAsArray().filter((/** @type {any} */ metric) => !metrics.includes(metric));
    const left = new Set(others.map(nameOf));
    return (await each.getMetricsAsJSON()).filter((/** @type {any} */ json) => !left.has(json?.name));
  });
  return [aggregateJson(await Promise.all(lists))];
}

/** @param {any} metric */
function nameOf({ name }) {
  return name;
}

/** The page of an AggregatorRegistry, which concurrent callers share. */
const sharedPage = coalesceByRegistry(async (registry, formats) =>
  scrapePages(await shownRegistries(registry), formats),
);

/**
 * @param {any} registry an AggregatorRegistry
 * @param {import('../exposition/page-format').PageFormat} format
 * @returns {Promise<import('../exposition/page-bytes').PageBytes>}
 */
async function ownPage(registry, { format, nativeFormat = format, gzip, names }) {
  const hasNative = ownRegistries(registry).some(hasNativeHistograms);
  const bytes = await sharedPage(registry, { format: hasNative ? nativeFormat : format, gzip, names });
  return withFacts(bytes, { hasNative });
}

module.exports = { ownRegistries, shownRegistries, ownPage };
