'use strict';

/**
 * A sample's value as text, in JavaScript's form (the shortest that reads back as the same number). NaN is
 * written `Nan`, as in prom-client: Prometheus ignores the case, and existing tests compare that spelling.
 *
 * @param {number} value
 * @returns {string}
 */
function formatNumber(value) {
  // x - x is 0 for all numbers but NaN and the infinities.
  if (value - value === 0) return '' + value;
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : 'Nan';
}

/**
 * The number for a value of a custom metric object. Anything that is not a number becomes NaN, so that an
 * invalid value does not look valid.
 *
 * @param {unknown} value
 * @returns {number}
 */
function toNumber(value) {
  if (typeof value === 'number') return value;
  return value === null || typeof value === 'symbol' ? NaN : Number(value);
}

module.exports = { formatNumber, toNumber };
