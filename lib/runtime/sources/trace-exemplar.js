'use strict';

/**
 * Loads the OpenTelemetry API, if the application has it.
 *
 * @returns {() => {traceId: string, spanId: string} | undefined} the exemplar labels of the span that is
 *   active at the call; undefined if none is
 */
function activeTrace() {
  const api = loadApi();
  if (api === undefined) return () => undefined;
  return () => {
    const span = api.trace.getSpan(api.context.active())?.spanContext();
    // Without an SDK, spans have no valid trace id.
    if (span === undefined || span.traceId === api.INVALID_TRACEID) return undefined;
    return { traceId: span.traceId, spanId: span.spanId };
  };
}

/** @returns {import('@opentelemetry/api') | undefined} */
function loadApi() {
  try {
    return require('@opentelemetry/api');
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

module.exports = { activeTrace };
