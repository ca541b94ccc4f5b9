'use strict';

/**
 * A sample's value as text. Numbers print as JavaScript prints them (shortest form that reads back the same). NaN is
 * spelled `Nan`, as prom-client does: Prometheus reads it in any case, and existing tests compare that spelling.
 *
 * @param {number} value
 * @returns {string}
 */
function formatNumber(value) {
  // NaN and both infinities are what x - x is not 0 for.
  if (value - value === 0) return '' + value;
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : 'Nan';
}

/**
 * The number behind a value that somebody's own metric object reports. What is no number is NaN: a wrong value must
 * not look like a right one.
 *
 * @param {unknown} value
 * @returns {number}
 */
function toNumber(value) {
  if (typeof value === 'number') return value;
  return value === null || typeof value === 'symbol' ? NaN : Number(value);
}

module.exports = { formatNumber, toNumber };
