'use strict';

// Checks that the body of a scrape has the values that the workers recorded.

const { labelSetNumber, weightOf } = require('../shared/label-sets.js');
const { bucketPlace } = require('../shared/workload.js');

const OWN_PREFIX = 'bench_'; // other families (a library's own metrics) are ignored
const TOLERANCE = { integers: 0, floats: 1e-9 };

/** @typedef {import('../shared/workload.js').Total} Total */

/**
 * Adds the workers' totals. All workers have the same series, so sums are added and line counts are not.
 *
 * @param {Record<string, Total>[]} totalsOfWorkers
 * @returns {Record<string, Total>}
 */
function expectedTotals(totalsOfWorkers) {
  const expected = {};
  for (const totals of totalsOfWorkers) {
    for (const [name, { lines, sum, weighted }] of Object.entries(totals)) {
      const total = (expected[name] ??= { lines, sum: 0, weighted: 0 });
      total.sum += sum;
      total.weighted += weighted;
    }
  }
  return expected;
}

/**
 * @param {string} body
 * @param {Record<string, Total>} expected
 * @param {'integers' | 'floats'} kind integers must agree exactly, floats to one in 10^9
 * @returns {string[]} what is wrong; empty if nothing is
 */
function checkBody(body, expected, kind) {
  const { totals, problems } = readTotals(body);
  for (const name of new Set([...Object.keys(expected), ...Object.keys(totals)])) {
    problems.push(...differences(name, expected[name], totals[name], TOLERANCE[kind]));
  }
  return problems;
}

/**
 * The same check without the numbers, for a page that was read while they changed.
 *
 * @param {string} body
 * @param {Record<string, Total>} expected
 * @returns {string[]} what is wrong: samples that are missing, too many, unexpected or unreadable
 */
function checkLines(body, expected) {
  const { totals, problems } = readTotals(body);
  for (const name of new Set([...Object.keys(expected), ...Object.keys(totals)])) {
    problems.push(...differences(name, expected[name], totals[name], 0, ['lines']));
  }
  return problems;
}

function differences(name, expected, found, tolerance, keys = ['lines', 'sum', 'weighted']) {
  if (!expected) return [`unexpected ${name}`];
  if (!found) return [`${name} is missing`];
  return keys
    .filter(key => !(Math.abs(found[key] - expected[key]) <= tolerance * Math.abs(expected[key])))
    .map(key => `${name}: ${key} is ${found[key]}, should be ${expected[key]}`);
}

function readTotals(body) {
  const totals = {};
  const problems = [];
  const typed = new Set();
  for (const line of body.split('\n')) {
    if (line.startsWith(`# TYPE ${OWN_PREFIX}`)) {
      if (typed.has(line)) problems.push(`twice: ${line}`);
      typed.add(line);
    } else if (line.startsWith(OWN_PREFIX)) {
      const problem = addSample(totals, line);
      if (problem) problems.push(problem);
    }
  }
  return { totals, problems: problems.slice(0, 5) };
}

/** Adds one line to its total; returns what is wrong with the line. */
function addSample(totals, line) {
  const open = line.indexOf('{');
  const close = line.lastIndexOf('} ');
  if (open < 0 || close < open) return `no labels: ${line}`;
  const name = line.slice(0, open);
  const weight = weightOfLine(name, parseLabels(line.slice(open + 1, close)));
  if (Number.isNaN(weight)) return `labels that were never recorded: ${line}`;
  const value = Number(line.slice(close + 2));
  const total = (totals[name] ??= { lines: 0, sum: 0, weighted: 0 });
  total.lines += 1;
  total.sum += value;
  total.weighted += value * weight;
  return undefined;
}

function weightOfLine(name, labels) {
  const weight = weightOf(labelSetNumber(labels));
  if (!name.endsWith('_bucket')) return weight;
  const place = bucketPlace(labels.le);
  return place < 0 ? NaN : weight * (place + 1);
}

/** Label values of the workload contain no quotes and no commas. */
function parseLabels(text) {
  const labels = {};
  for (const pair of text.split(',')) {
    const equals = pair.indexOf('=');
    labels[pair.slice(0, equals)] = pair.slice(equals + 2, -1);
  }
  return labels;
}

module.exports = { checkBody, checkLines, expectedTotals };
