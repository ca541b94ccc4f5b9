'use strict';

/**
 * Loads the OpenTelemetry API, if the application has it.
 *
 * @returns {() => {traceId: string, spanId: string} | undefined} the labels that lead to the span which is active at
 *   the call; undefined where there is none
 */
function activeTrace() {
  const api = loadApi();
  if (api === undefined) return () => undefined;
  return () => {
    const span = api.trace.getSpan(api.context.active())?.spanContext();
    // Without an SDK there are spans, but none that anybody could look up.
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
