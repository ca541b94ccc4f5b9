'use strict';

// prom-client/lib/validation

const { isValidMetricName, isValidLabelName } = require('../metric/names');
const { checkLabelNames } = require('../metric/label-sets');

/**
 * @param {readonly string[]} [names]
 * @returns {boolean} whether all of them can be names of labels
 */
function validateLabelName(names = []) {
  return names.every(isValidLabelName);
}

/**
 * @param {readonly string[]} labelNames those that a metric has
 * @param {Record<string, unknown> | null} [labels]
 * @throws {Error} for the first label that is not one of `labelNames`
 */
function validateLabel(labelNames, labels) {
  checkLabelNames({ labelNames }, labels ?? {});
}

module.exports = { validateMetricName: isValidMetricName, validateLabelName, validateLabel };
