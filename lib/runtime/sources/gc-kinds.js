'use strict';

// Names of V8's kinds of garbage collection. A performance entry has a number, which runs and pauses are
// counted by; a record of V8's profiler has a word, which freed bytes are counted by.

/** https://v8.github.io/api/head/namespacev8.html, GCType: the bits that Node.js passes on. */
const BY_NUMBER = new Map([
  [1, 'minor'],
  // --minor-ms (before Node.js 22: --minor-mc). Node.js has a constant for it since 24.
  [2, 'minor_mark_sweep'],
  [4, 'major'],
  [8, 'incremental'],
  [16, 'weakcb'],
]);

const BY_WORD = new Map([
  ['Scavenge', 'minor'],
  ['MinorMarkSweep', 'minor_mark_sweep'],
  ['MinorMarkCompact', 'minor_mark_sweep'],
  ['MarkSweepCompact', 'major'],
  ['IncrementalMarking', 'incremental'],
  ['ProcessWeakCallbacks', 'weakcb'],
]);

// The profiler's word for kinds that it has no word for. Up to Node.js 26 this can only be minor_mark_sweep,
// which has no word up to 22, and in 24 and 26 before https://github.com/nodejs/node/pull/64688.
if (Number.parseInt(process.versions.node, 10) <= 26) BY_WORD.set('Unknown', 'minor_mark_sweep');

/** All kinds of a future V8 together, for freed bytes: nothing says which word belongs to which number. */
const UNKNOWN = 'unknown_other';

/** Kinds that every process has sooner or later. */
const COMMON_KINDS = Object.freeze(['minor', 'major', 'incremental']);

/**
 * @param {number} number `detail.kind` of a performance entry
 * @returns {string} e.g. minor; `unknown_<number>` for a kind of a future V8
 */
function kindOfNumber(number) {
  return BY_NUMBER.get(number) ?? `unknown_${number}`;
}

/**
 * @param {number} number `detail.kind` of a performance entry
 * @returns {string} the kind that the freed bytes are counted by
 */
function profiledKindOfNumber(number) {
  return BY_NUMBER.get(number) ?? UNKNOWN;
}

/**
 * @param {string} word `gcType` of a profiler's record
 * @returns {string} the kind that the freed bytes are counted by
 */
function profiledKindOfWord(word) {
  return BY_WORD.get(word) ?? UNKNOWN;
}

module.exports = { COMMON_KINDS, kindOfNumber, profiledKindOfNumber, profiledKindOfWord };
