'use strict';

// prom-client-cluster/testing: what an application's tests need. Works with any test runner, and with the
// registries of any copy of this package or of prom-client, because it reads pages.

const { AssertionError } = require('node:assert');
const { inspect } = require('node:util');
const { parsePage } = require('./parse-page');
const { lintFamilies } = require('./lint');

/** @typedef {import('./parse-page').Family} Family */
/** @typedef {import('./parse-page').Sample} Sample */

/**
 * A registry or a page. In the primary of a cluster, the page of an AggregatorRegistry is that of all
 * workers.
 *
 * @typedef {string | {metrics: () => string | Promise<string>, clusterMetrics?: () => Promise<string>}}
 *   Source
 */

/**
 * The samples of a registry as they are scraped.
 *
 * @param {Source} registry
 * @param {string} [name] only those of this metric
 * @returns {Promise<Sample[]>}
 */
async function samples(registry, name) {
  const families = parsePage(await pageOf(registry));
  return families
    .filter(family => name === undefined || family.name === name)
    .flatMap(family => family.samples);
}

/**
 * Compares the metrics of a registry with a text in the Prometheus text format. The order of metrics, samples
 * and labels does not matter, nor does indentation. HELP and TYPE are compared if the text has them. If the
 * text has metrics and none of them is compared, because the names are misspelt, that is an error.
 *
 * @param {Source} registry
 * @param {string} text
 * @param {string | readonly string[]} [names] of metrics; default all of the registry
 * @returns {Promise<void>}
 * @throws {AssertionError} with the difference
 * @throws {TypeError} if `text` is not a string
 */
async function assertMetrics(registry, text, names) {
  if (typeof text !== 'string') throw new TypeError(`assertMetrics() expected a text: ${inspect(text)}`);
  const wanted = names === undefined ? undefined : new Set([names].flat());
  const isWanted = (/** @type {Family} */ { name }) => wanted === undefined || wanted.has(name);
  const all = parsePage(await pageOf(registry));
  const familyNames = new Map(all.flatMap(family => family.samples.map(({ name }) => [name, family.name])));
  const actualFamilies = all.filter(isWanted);
  const allOfText = parsePage(text, name => familyNames.get(name) ?? name);
  const expectedFamilies = allOfText.filter(isWanted);
  if (allOfText.length > 0 && actualFamilies.length + expectedFamilies.length === 0)
    throw new AssertionError({
      message: `No metric has the name ${inspect(names)}`,
      stackStartFn: assertMetrics,
    });
  const given = new Map(expectedFamilies.map(family => [family.name, family]));
  const expected = comparable(expectedFamilies, given);
  const actual = comparable(actualFamilies, given);
  if (actual !== expected)
    throw new AssertionError({ actual, expected, operator: 'strictEqual', stackStartFn: assertMetrics });
}

/**
 * Checks names, types, units and HELP texts as `promtool check metrics` does.
 *
 * @param {Source} registry
 * @returns {Promise<{metric: string, text: string}[]>} problems; none if all is well
 */
async function lint(registry) {
  return lintFamilies(parsePage(await pageOf(registry)));
}

/**
 * @param {Source} registry
 * @returns {Promise<string>}
 */
async function pageOf(registry) {
  if (typeof registry === 'string') return registry;
  if (typeof registry?.metrics !== 'function')
    throw new TypeError('expected a Registry, or the text of a page');
  const page = (await registry.clusterMetrics?.()) || (await textOf(registry));
  if (typeof page !== 'string') throw new TypeError(`metrics() returned no text: ${inspect(page)}`);
  return page;
}

/**
 * @param {any} registry
 * @returns {Promise<string>}
 */
async function textOf(registry) {
  if (!String(registry.contentType).includes('protobuf')) return registry.metrics();
  const metrics = registry.getMetricsAsArray();
  const texts = await Promise.all(
    metrics.map((/** @type {any} */ { name }) => registry.getSingleMetricAsString(name)),
  );
  return texts.map(text => `${text}\n\n`).join('');
}

/**
 * @param {Family[]} families
 * @param {Map<string, Family>} given the families of the text: what they leave out is left out
 * @returns {string} one sample a line, sorted
 */
function comparable(families, given) {
  const lines = [...families]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, type, help, samples: all }) => {
      const shown = given.get(name) ?? { type, help };
      return [
        ...(shown.help === undefined ? [] : [`# HELP ${name} ${help}`]),
        ...(shown.type === 'untyped' ? [] : [`# TYPE ${name} ${type}`]),
        ...all.map(lineOf).sort(),
      ];
    });
  return lines.join('\n');
}

/** @param {Sample} sample */
function lineOf({ name, labels, value }) {
  const pairs = Object.keys(labels)
    .sort()
    .map(label => `${label}=${JSON.stringify(labels[label])}`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs}}`} ${value}`;
}

module.exports = { samples, assertMetrics, lint };
