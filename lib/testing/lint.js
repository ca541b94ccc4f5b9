'use strict';

// The rules of promlint, which `promtool check metrics` applies
// (https://github.com/prometheus/client_golang, prometheus/testutil/promlint), with its texts.

/** @typedef {import('./parse-page').Family} Family */

/** Base units, with those that Prometheus advises against. */
const UNITS = {
  amperes: [],
  bytes: ['bits'],
  celsius: ['fahrenheit', 'rankine'],
  grams: ['pounds', 'ounces'],
  joules: ['calories'],
  kelvin: ['kelvins'],
  meters: ['inches', 'yards', 'miles'],
  metres: [],
  seconds: ['minutes', 'hours', 'days', 'weeks'],
  volts: [],
};

/** By the name of a unit. */
const BASE_UNITS = new Map(
  Object.entries(UNITS).flatMap(([base, others]) => [base, ...others].map(unit => [unit, base])),
);

const PREFIXES =
  'pico nano micro milli centi deci deca hecto kilo kibi mega mibi giga gibi tera tebi peta pebi'.split(' ');

const ABBREVIATIONS = 's ms us ns sec b kb mb gb tb pb m h d'.split(' ');

const TYPES = ['counter', 'gauge', 'summary', 'histogram', 'gauge_histogram'];

/** Suffixes and labels, with the only types that may have them. */
const SUFFIXES = {
  _total: ['counter'],
  _bucket: ['histogram'],
  _count: ['histogram', 'summary'],
  _sum: ['histogram', 'summary'],
};
const LABELS = { le: 'histogram', quantile: 'summary' };

/**
 * The rules. Each returns a text if a metric violates it.
 *
 * @type {((family: Family) => string | false | undefined)[]}
 */
const RULES = [
  ({ help }) => !help && 'no help text',
  ({ name }) => {
    const unit = unitIn(name);
    return unit && unit.name !== unit.base && `use base unit "${unit.base}" instead of "${unit.name}"`;
  },
  ({ name, type }) =>
    type === 'counter' && !name.endsWith('_total') && 'counter metrics should have "_total" suffix',
  ...Object.entries(SUFFIXES).map(
    ([suffix, types]) =>
      (/** @type {Family} */ family) =>
        isTypedOtherThan(family, types) &&
        family.name.endsWith(suffix) &&
        `non-${types.join(' and non-')} metrics should not have "${suffix}" suffix`,
  ),
  ...Object.entries(LABELS).map(
    ([label, type]) =>
      (/** @type {Family} */ family) =>
        isTypedOtherThan(family, [type]) &&
        labelsOf(family).includes(label) &&
        `non-${type} metrics should not have "${label}" label`,
  ),
  ...TYPES.map(
    type =>
      (/** @type {Family} */ { name }) =>
        hasWord(name, type) && `metric name should not include type '${type}'`,
  ),
  ({ name }) => name.includes(':') && "metric names should not contain ':'",
  ({ name }) => isCamelCase(name) && "metric names should be written in 'snake_case' not 'camelCase'",
  family =>
    labelsOf(family).some(isCamelCase) && "label names should be written in 'snake_case' not 'camelCase'",
  ({ name }) =>
    ABBREVIATIONS.some(unit => hasWord(name, unit)) && 'metric names should not contain abbreviated units',
];

/**
 * @param {Family[]} families
 * @returns {{metric: string, text: string}[]} sorted by metric
 */
function lintFamilies(families) {
  return families
    .flatMap(family => RULES.map(rule => ({ metric: family.name, text: rule(family) || '' })))
    .filter(({ text }) => text !== '')
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
  return `${name}_`.toLowerCase().includes(`_${word}_`);
}

/** @param {string} name */
function isCamelCase(name) {
  return /[a-z][A-Z]/.test(name);
}

/**
 * @param {Family} family
 * @param {string[]} types
 */
function isTypedOtherThan({ type }, types) {
  return !['untyped', 'unknown', ...types].includes(type);
}

/** @param {Family} family */
function labelsOf({ samples }) {
  return samples.flatMap(({ labels }) => Object.keys(labels));
}

/**
 * @param {string} left
 * @param {string} right
 */
function compare(left, right) {
  return left < right ? -1 : Number(left > right);
}

module.exports = { lintFamilies };
