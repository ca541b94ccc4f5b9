'use strict';

/** The Content-Type of Prometheus text 0.0.4. */
const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** The Content-Type of OpenMetrics text 1.0.0. */
const OPENMETRICS_CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/**
 * @param {unknown} contentType
 * @returns {contentType is string} whether this format is supported
 */
function isSupported(contentType) {
  return contentType === PROMETHEUS_CONTENT_TYPE || contentType === OPENMETRICS_CONTENT_TYPE;
}

module.exports = { PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, isSupported };
