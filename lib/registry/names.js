'use strict';

const { withCode } = require('../options/coded-error');
const { explainedError, printed } = require('../options/explained-error');

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
  throw withCode('INVALID_NAME', nameError('Invalid metric name', name, 'letters, digits, _ and :'));
}

/**
 * @param {Iterable<string>} names
 * @throws {Error} if one of them is not valid
 */
function checkLabelNamesAreValid(names) {
  for (const name of names) {
    if (isValidLabelName(name)) continue;
    throw withCode('INVALID_LABEL', nameError('Invalid label name', name, 'letters, digits and _'));
  }
}

/**
 * @param {string} message prom-client's
 * @param {unknown} name
 * @param {string} allowed
 */
function nameError(message, name, allowed) {
  return explainedError(Error, message, `: ${printed(name)}. Use ${allowed}, and no digit first`);
}

module.exports = { isValidMetricName, isValidLabelName, checkMetricName, checkLabelNamesAreValid };
