'use strict';

const { inspect } = require('util');

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

/** Content types by the names that options take. */
const FORMATS = new Map([
  ['text', PROMETHEUS_CONTENT_TYPE],
  ['openmetrics', OPENMETRICS_CONTENT_TYPE],
]);

/**
 * @param {unknown} formats names of formats
 * @returns {string[]} their content types, each once
 * @throws {TypeError} if it is not a list of names, or is empty
 */
function contentTypesOf(formats) {
  const contentTypes = Array.isArray(formats) ? formats.map(format => FORMATS.get(format)) : [];
  if (contentTypes.length === 0 || contentTypes.includes(undefined)) {
    throw new TypeError(`formats must be a list of 'text' and 'openmetrics': ${inspect(formats)}`);
  }
  return /** @type {string[]} */ ([...new Set(contentTypes)]);
}

module.exports = { PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, isSupported, contentTypesOf };
