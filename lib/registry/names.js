'use strict';

const { codedError } = require('../options/coded-error');
const { printed } = require('../options/thrown');

// https://prometheus.io/docs/concepts/data_model/#metric-names-and-labels
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * @param {string} name
 * @returns {boolean} whether Prometheus accepts it as the name of a metric
 */
function isValidMetricName(name) {
  return METRIC_NAME.test(name);
}

/**
 * @param {string} name
 * @returns {boolean} whether Prometheus accepts it as the name of a label
 */
function isValidLabelName(name) {
  return LABEL_NAME.test(name);
}

/**
 * @param {string} name
 * @throws {Error} if it is not valid
 */
function checkMetricName(name) {
  if (isValidMetricName(name)) return;
  throw codedError('INVALID_NAME', Error, 'Invalid metric name', adviceOn(name, 'letters, digits, _ and :'));
}

/**
 * @param {Iterable<string>} names
 * @throws {Error} if one of them is not valid
 */
function checkLabelNamesAreValid(names) {
  for (const name of names) {
    if (isValidLabelName(name)) continue;
    throw codedError('INVALID_LABEL', Error, 'Invalid label name', adviceOn(name, 'letters, digits and _'));
  }
}

/**
 * @param {unknown} name
 * @param {string} allowed
 */
function adviceOn(name, allowed) {
  return `: ${printed(name)}. Use ${allowed}, and no digit first`;
}

module.exports = { isValidMetricName, isValidLabelName, checkMetricName, checkLabelNamesAreValid };
