'use strict';

const { warnOnce } = require('../options/warnings');

// The state that all copies of the OpenTelemetry API in a process share, whatever their versions. Reading it
// finds the application's tracer wherever its copy is installed. A copy of our own could not be relied on:
// one that is newer than the application's ignores its tracer.
const API = Symbol.for('opentelemetry.js.api.1');

/** Under which a context has its span. */
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN');

const INVALID_TRACE_ID = '0'.repeat(32);

/** In `traceFlags`. */
const SAMPLED = 1;

/**
 * @returns {{traceId: string, spanId: string, isSampled: boolean} | undefined} of the OpenTelemetry span that
 *   is active; undefined if none is, or if the API throws, because the caller has counted already
 */
function activeTrace() {
  try {
    const span = /** @type {any} */ (globalThis)[API]?.context?.active().getValue(SPAN)?.spanContext();
    if (span === undefined || span.traceId === INVALID_TRACE_ID) return undefined;
    return { traceId: span.traceId, spanId: span.spanId, isSampled: (span.traceFlags & SAMPLED) !== 0 };
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    warnOnce(
      'OpenTelemetry',
      `Exemplars lack the active trace, because the OpenTelemetry API failed: ${reason}`,
    );
    return undefined;
  }
}

module.exports = { activeTrace };
