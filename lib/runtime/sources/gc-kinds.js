'use strict';

// The names of V8's kinds of garbage collection, for both of its tongues: the number that a performance entry has, by
// which runs and pauses are counted, and the word that the profiler has, by which bytes are.

/** https://v8.github.io/api/head/namespacev8.html, GCType: the bits that Node.js passes on. */
const BY_NUMBER = new Map([
  [1, 'minor'],
  // Node.js got a constant for it during 24; --minor-ms (before Node.js 22: --minor-mc) has it from V8 before that.
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

// What the profiler calls all that it has no word for. Up to Node.js 26, V8 has no other kinds than those above, and only
// one of them was ever without a word: for good up to 22, and in 24 and 26 until https://github.com/nodejs/node/pull/64688.
if (Number.parseInt(process.versions.node, 10) <= 26) BY_WORD.set('Unknown', 'minor_mark_sweep');

/** So many kinds of which we know nothing are told apart: a label needs an end. */
const MAX_UNKNOWN = 8;
/** All kinds without a name as one. */
const UNNAMED = 'unknown_other';

/** Kinds that every process has sooner or later. */
const COMMON_KINDS = Object.freeze(['minor', 'major', 'incremental']);

// What V8 has said so far that has no name here. Of words, two are as good as more.
/** @type {Set<number>} */
const unnamedNumbers = new Set();
/** @type {Set<string>} */
const unnamedWords = new Set();

/**
 * @param {number} number `detail.kind` of a performance entry
 * @returns {string} e.g. minor; `unknown_<number>` for what V8 may invent
 */
function kindOfNumber(number) {
  const name = BY_NUMBER.get(number);
  if (name !== undefined) return name;
  if (unnamedNumbers.size < MAX_UNKNOWN) unnamedNumbers.add(number);
  return unnamedNumbers.has(number) ? `unknown_${number}` : UNNAMED;
}

/**
 * @param {number} number
 * @returns {string} as of kindOfNumber(), but all kinds without a name are one, as the profiler may call them anything
 */
function nameOfNumber(number) {
  return BY_NUMBER.get(number) ?? UNNAMED;
}

/**
 * @param {string} word `gcType` of a profiler's record
 * @returns {string} as of nameOfNumber()
 */
function nameOfWord(word) {
  const name = BY_WORD.get(word);
  if (name !== undefined) return name;
  if (unnamedWords.size < 2) unnamedWords.add(word);
  return UNNAMED;
}

/**
 * @param {string} name of nameOfWord()
 * @returns {string} the kind that its bytes count for. A number and a word without a name are the same kind while there
 *   is only one of each; otherwise nobody knows which belong together
 */
function kindOfName(name) {
  if (name !== UNNAMED || unnamedNumbers.size !== 1 || unnamedWords.size !== 1) return name;
  const [number] = unnamedNumbers;
  return kindOfNumber(number);
}

module.exports = { COMMON_KINDS, kindOfNumber, nameOfNumber, nameOfWord, kindOfName };
