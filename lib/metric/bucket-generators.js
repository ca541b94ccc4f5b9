'use strict';

const { inspect } = require('util');
const { warnOfCall } = require('../options/warnings');
const { codedError, invalidOption } = require('../options/coded-error');

// What an array can have. Memory ends before that.
const MAX_COUNT = 2 ** 32;

/**
 * Bounds at equal distances.
 *
 * @param {number} start the first bound
 * @param {number} width the distance
 * @param {number} count how many, at least 1; what is not a number stands for 1
 * @returns {number[]}
 * @throws {Error} if count is below 1
 * @throws {RangeError} if count is not a whole number
 */
function linearBuckets(start, width, count) {
  if (count < 1) throw invalidOption('Linear buckets needs a positive count', Error);
  if (!isCount('linearBuckets()', count)) return [start];
  return Array.from({ length: Number(count) }, (_, i) => start + i * width);
}

/**
 * Bounds that grow by a factor.
 *
 * @param {number} start the first bound, above 0
 * @param {number} factor above 1
 * @param {number} count how many, at least 1; what is not a number stands for 1
 * @returns {number[]}
 * @throws {Error} if an argument is out of range
 * @throws {RangeError} if count is not a whole number
 */
function exponentialBuckets(start, factor, count) {
  if (start <= 0) throw invalidOption('Exponential buckets needs a positive start', Error);
  if (count < 1) throw invalidOption('Exponential buckets needs a positive count', Error);
  if (factor <= 1) throw invalidOption('Exponential buckets needs a factor greater than 1', Error);
  if (!isCount('exponentialBuckets()', count)) return [start];
  let bound = start;
  return Array.from({ length: Number(count) }, (_, i) => (i === 0 ? bound : (bound *= factor)));
}

/**
 * @param {string} generator
 * @param {number} count
 * @returns {boolean} false if it is missing or not a number
 * @throws {RangeError} if it is a number but no length
 */
function isCount(generator, count) {
  if (Number.isInteger(Number(count)) && count < MAX_COUNT) return true;
  if (typeof count === 'number') {
    const more = `: the count of buckets must be a whole number: ${inspect(count)}`;
    throw codedError('INVALID_OPTION', RangeError, 'Invalid array length', more);
  }
  warnOfCall(generator, 'one bucket, because its third argument is not their count', count);
  return false;
}

module.exports = { linearBuckets, exponentialBuckets };
