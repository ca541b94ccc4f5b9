'use strict';

// The names of V8's kinds of garbage collection, for both of its tongues: the number that a performance entry has, and
// the word that the profiler has.

/** https://v8.github.io/api/head/namespacev8.html, GCType: the bits that Node.js passes on. */
const BY_NUMBER = new Map([
  [1, 'minor'],
  // Node.js has a constant for it since 24; --minor-ms (before Node.js 22: --minor-mc) has it from V8 before that.
  [2, 'minor_mark_sweep'],
  [4, 'major'],
  [8, 'incremental'],
  [16, 'weakcb'],
]);

const BY_NAME = new Map([
  ['Scavenge', 'minor'],
  ['MinorMarkSweep', 'minor_mark_sweep'],
  ['MinorMarkCompact', 'minor_mark_sweep'],
  // What the profiler calls the only kind that it has no word for, up to Node.js 22.
  ['Unknown', 'minor_mark_sweep'],
  ['MarkSweepCompact', 'major'],
  ['IncrementalMarking', 'incremental'],
  ['ProcessWeakCallbacks', 'weakcb'],
]);

/** So many kinds of which we know nothing are told apart: a label needs an end. */
const MAX_UNKNOWN = 8;
const OTHERS = 'unknown_other';

/** Kinds that every process has sooner or later. */
const COMMON_KINDS = Object.freeze(['minor', 'major', 'incremental']);

/** @type {Set<string>} */
const unknown = new Set();

/**
 * @param {number} number `detail.kind` of a performance entry
 * @returns {string} e.g. minor; `unknown_<number>` for what V8 may invent
 */
function kindOfNumber(number) {
  return BY_NUMBER.get(number) ?? unknownKind(number);
}

/**
 * @param {string} name `gcType` of a profiler's record
 * @returns {string} as of kindOfNumber()
 */
function kindOfName(name) {
  return BY_NAME.get(name) ?? unknownKind(name);
}

/** @param {string | number} identity */
function unknownKind(identity) {
  const kind = `unknown_${identity}`;
  if (!unknown.has(kind)) {
    if (unknown.size >= MAX_UNKNOWN) return OTHERS;
    unknown.add(kind);
  }
  return kind;
}

module.exports = { COMMON_KINDS, kindOfNumber, kindOfName };
