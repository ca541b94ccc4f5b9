'use strict';

// prom-client/lib/validation

const { isValidMetricName, isValidLabelName } = require('../registry/names');
const { checkLabelNames } = require('../metric/label-sets');

/**
 * @param {readonly string[]} [names]
 * @returns {boolean} whether all of them are valid label names
 */
function validateLabelName(names = []) {
  return names.every(isValidLabelName);
}

/**
 * @param {readonly string[]} labelNames the label names of a metric
 * @param {Record<string, unknown> | null} [labels]
 * @throws {Error} for the first label that is not one of `labelNames`
 */
function validateLabel(labelNames, labels) {
  checkLabelNames({ labelNames }, labels ?? {});
}

module.exports = { validateMetricName: isValidMetricName, validateLabelName, validateLabel };
