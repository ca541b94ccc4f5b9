'use strict';

// The rules of promlint, which `promtool check metrics` applies
// (https://github.com/prometheus/client_golang, prometheus/testutil/promlint), with its texts.

/** @typedef {import('./parse-page').Family} Family */

/** Units that Prometheus advises against, by name, with the base unit. Base units stand for themselves. */
const BASE_UNITS = new Map([
  ...'amperes bytes celsius grams joules kelvin meters metres seconds volts'
    .split(' ')
    .flatMap(unit => unitsOf(unit, unit)),
  ...unitsOf('seconds', 'minutes', 'hours', 'days', 'weeks'),
  ...unitsOf('kelvin', 'kelvins'),
  ...unitsOf('celsius', 'fahrenheit', 'rankine'),
  ...unitsOf('meters', 'inches', 'yards', 'miles'),
  ...unitsOf('bytes', 'bits'),
  ...unitsOf('joules', 'calories'),
  ...unitsOf('grams', 'pounds', 'ounces'),
]);

const PREFIXES =
  'pico nano micro milli centi deci deca hecto kilo kibi mega mibi giga gibi tera tebi peta pebi'.split(' ');

const ABBREVIATIONS = 's ms us ns sec b kb mb gb tb pb m h d'.split(' ');

const TYPES = ['counter', 'gauge', 'summary', 'histogram', 'gauge_histogram'];

/**
 * @param {string} base
 * @param {...string} units
 * @returns {[string, string][]}
 */
function unitsOf(base, ...units) {
  return units.map(unit => [unit, base]);
}

/** @type {((family: Family) => (string | false | undefined)[])[]} */
const RULES = [
  ({ help }) => [!help && 'no help text'],

  ({ name }) => {
    const unit = unitIn(name);
    return [unit && unit.name !== unit.base && `use base unit "${unit.base}" instead of "${unit.name}"`];
  },

  ({ name, type }) => {
    const hasSuffix = name.endsWith('_total');
    return [
      type === 'counter' && !hasSuffix && 'counter metrics should have "_total" suffix',
      !isUntyped(type) &&
        type !== 'counter' &&
        hasSuffix &&
        'non-counter metrics should not have "_total" suffix',
    ];
  },

  ({ name, type, samples }) => {
    if (isUntyped(type)) return [];
    const isHistogram = type === 'histogram';
    const isSummary = type === 'summary';
    const has = (/** @type {string} */ label) => samples.some(({ labels }) => Object.hasOwn(labels, label));
    const isEither = isHistogram || isSummary;
    return [
      !isHistogram && name.endsWith('_bucket') && 'non-histogram metrics should not have "_bucket" suffix',
      !isEither &&
        name.endsWith('_count') &&
        'non-histogram and non-summary metrics should not have "_count" suffix',
      !isEither &&
        name.endsWith('_sum') &&
        'non-histogram and non-summary metrics should not have "_sum" suffix',
      !isHistogram && has('le') && 'non-histogram metrics should not have "le" label',
      !isSummary && has('quantile') && 'non-summary metrics should not have "quantile" label',
    ];
  },

  ({ name }) =>
    TYPES.map(type => hasWord(name.toLowerCase(), type) && `metric name should not include type '${type}'`),

  ({ name }) => [name.includes(':') && "metric names should not contain ':'"],

  ({ name, samples }) => [
    isCamelCase(name) && "metric names should be written in 'snake_case' not 'camelCase'",
    samples.some(({ labels }) => Object.keys(labels).some(isCamelCase)) &&
      "label names should be written in 'snake_case' not 'camelCase'",
  ],

  ({ name }) => [
    ABBREVIATIONS.some(unit => hasWord(name.toLowerCase(), unit)) &&
      'metric names should not contain abbreviated units',
  ],
];

/**
 * @param {Family[]} families
 * @returns {{metric: string, text: string}[]} sorted by metric
 */
function lintFamilies(families) {
  return families
    .flatMap(family =>
      RULES.flatMap(rule => rule(family)).flatMap(text => (text ? { metric: family.name, text } : [])),
    )
    .sort((a, b) => compare(a.metric, b.metric) || compare(a.text, b.text));
}

/**
 * @param {string} name of a metric
 * @returns {{name: string, base: string} | undefined} the first unit in it
 */
function unitIn(name) {
  for (const word of name.split('_')) {
    const prefix = PREFIXES.find(start => word.startsWith(start) && BASE_UNITS.has(word.slice(start.length)));
    const base = BASE_UNITS.get(word) ?? BASE_UNITS.get(word.slice(prefix?.length));
    if (base !== undefined) return { name: word, base };
  }
  return undefined;
}

/**
 * @param {string} name
 * @param {string} word
 * @returns {boolean} whether it is there, but not at the beginning
 */
function hasWord(name, word) {
  return name.includes(`_${word}_`) || name.endsWith(`_${word}`);
}

/** @param {string} name */
function isCamelCase(name) {
  return /[a-z][A-Z]/.test(name);
}

/** @param {string} type */
function isUntyped(type) {
  return type === 'untyped' || type === 'unknown';
}

/**
 * @param {string} left
 * @param {string} right
 */
function compare(left, right) {
  return left < right ? -1 : Number(left > right);
}

module.exports = { lintFamilies };
