'use strict';

/**
 * Kinds of V8's garbage collections with the names of prom-client. A performance entry has a number, which
 * runs and pauses are counted by (GCType in https://v8.github.io/api/head/namespacev8.html); a record of V8's
 * profiler has a word, which freed bytes are counted by.
 *
 * @type {Record<string | number, string | undefined>}
 */
const KINDS = {
  1: 'minor',
  Scavenge: 'minor',
  4: 'major',
  MarkSweepCompact: 'major',
  8: 'incremental',
  IncrementalMarking: 'incremental',
  16: 'weakcb',
  ProcessWeakCallbacks: 'weakcb',
};

/** Kinds that every process has sooner or later. */
const COMMON_KINDS = Object.freeze(['minor', 'major', 'incremental']);

/**
 * @param {string | number} numberOrWord `detail.kind` of a performance entry, or `gcType` of a profiler's
 *   record
 * @returns {string} `other` for collectors behind a flag (`--minor-ms`), and those of a future V8
 */
function kindOf(numberOrWord) {
  return KINDS[numberOrWord] ?? 'other';
}

module.exports = { COMMON_KINDS, kindOf };
