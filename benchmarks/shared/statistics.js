'use strict';

/**
 * @param {number[]} values
 * @returns {number} NaN of none
 */
function median(values) {
  return quantile(values, 0.5);
}

/**
 * @param {number[]} values
 * @param {number} share 0 to 1
 * @returns {number} interpolated between neighbours; NaN of none
 */
function quantile(values, share) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.ceil(place);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

/**
 * @typedef {{median: number, min: number, max: number, count: number}} Summary
 */

/**
 * @param {number[]} values
 * @returns {Summary}
 */
function summarise(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), count: values.length };
}

module.exports = { median, quantile, summarise };
