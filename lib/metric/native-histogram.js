'use strict';

// What makes a histogram a native one: its options, and the sparse buckets of its rows.

const { inspect } = require('util');
const { NativeBuckets } = require('../series/native-buckets');
const { MIN_SCHEMA, MAX_SCHEMA } = require('../series/native-index');

const FACTOR = 'nativeHistogramBucketFactor';
const ZERO_THRESHOLD = 'nativeHistogramZeroThreshold';
const MAX_BUCKETS = 'nativeHistogramMaxBucketNumber';
const MAX_EXEMPLARS = 'nativeHistogramMaxExemplars';
const EXEMPLAR_TTL = 'nativeHistogramExemplarTTL';

const NATIVE_OPTIONS = [FACTOR, ZERO_THRESHOLD, MAX_BUCKETS, MAX_EXEMPLARS, EXEMPLAR_TTL];

const DEFAULT_ZERO_THRESHOLD = 2 ** -128;
const DEFAULT_MAX_BUCKETS = 160;

/**
 * @param {any} options of a histogram
 * @returns {NativeBuckets | undefined} undefined if it is not a native one
 * @throws {RangeError} if an option is not valid
 */
function nativeBucketsOf(options) {
  const factor = options[FACTOR];
  if (factor == null) return undefined;
  return new NativeBuckets({
    schema: schemaOf(factor),
    zeroThreshold: Math.max(numberOf(options, ZERO_THRESHOLD, DEFAULT_ZERO_THRESHOLD), 0),
    maxBuckets: countOf(options, MAX_BUCKETS, DEFAULT_MAX_BUCKETS) || Infinity,
  });
}

/**
 * @param {unknown} factor
 * @returns {number} the lowest schema whose buckets grow by at most this factor
 * @throws {RangeError} if it is not a number above 1
 */
function schemaOf(factor) {
  if (!(typeof factor === 'number' && factor > 1)) throw rangeError(FACTOR, 'a number above 1', factor);
  const schema = -Math.floor(Math.log2(Math.log2(factor)));
  return Math.min(Math.max(schema, MIN_SCHEMA), MAX_SCHEMA);
}

/**
 * @param {any} options
 * @param {string} name
 * @param {number} byDefault
 * @returns {number}
 * @throws {RangeError} if it is not a finite number
 */
function numberOf(options, name, byDefault) {
  const value = options[name] ?? byDefault;
  if (!Number.isFinite(value)) throw rangeError(name, 'a number', value);
  return value;
}

/**
 * @param {any} options
 * @param {string} name
 * @param {number} byDefault
 * @returns {number}
 * @throws {RangeError} if it is neither an integer from 0 on nor Infinity
 */
function countOf(options, name, byDefault) {
  const value = options[name] ?? byDefault;
  if (value === Infinity || (Number.isInteger(value) && value >= 0)) return value;
  throw rangeError(name, 'an integer from 0 on', value);
}

/**
 * @param {string} name
 * @param {string} expected
 * @param {unknown} value
 */
function rangeError(name, expected, value) {
  return new RangeError(`${name} must be ${expected}: ${inspect(value)}`);
}

module.exports = { NATIVE_OPTIONS, nativeBucketsOf };
