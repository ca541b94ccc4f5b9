'use strict';

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

module.exports = { isValidMetricName, isValidLabelName };
