'use strict';

// Reads how much was recorded with a metric.

/**
 * @param {any} metric a counter
 * @returns {Promise<number>} the sum over its series
 */
async function sumOf(metric) {
  const { values } = await metric.get();
  return values.reduce((sum, { value }) => sum + value, 0);
}

/**
 * @param {any} metric a histogram or summary
 * @returns {Promise<number>} how many observations it has
 */
async function observationsOf(metric) {
  const { values } = await metric.get();
  const counts = values.filter(({ metricName }) => metricName === `${metric.name}_count`);
  return counts.reduce((sum, { value }) => sum + value, 0);
}

/**
 * @param {any} metric a gauge that is set to 1, 2, 3… in turn
 * @returns {Promise<number>} the highest of its series
 */
async function highestOf(metric) {
  const { values } = await metric.get();
  return values.reduce((highest, { value }) => Math.max(highest, value), 0);
}

module.exports = { sumOf, observationsOf, highestOf };
