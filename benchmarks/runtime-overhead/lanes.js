'use strict';

// The lanes of the comparison: the same service with no default metrics, with prom-client's, and with all of
// them.

/** @type {{key: 'none' | 'default' | 'runtime', title: string}[]} */
const LANES = [
  { key: 'none', title: 'none' },
  { key: 'default', title: "prom-client's" },
  { key: 'runtime', title: 'all' },
];

const BASELINE = 'none';

// Each lane is first, second and last equally often, and before and after each other one.
const ORDERS = [
  ['none', 'default', 'runtime'],
  ['runtime', 'default', 'none'],
  ['default', 'runtime', 'none'],
  ['none', 'runtime', 'default'],
  ['runtime', 'none', 'default'],
  ['default', 'none', 'runtime'],
];

/**
 * @param {number} block a number of its own for each time that all lanes are measured
 * @returns {string[]} the lanes in the order in which they are measured
 */
function orderOf(block) {
  return ORDERS[block % ORDERS.length];
}

module.exports = { LANES, BASELINE, orderOf };
