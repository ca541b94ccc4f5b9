'use strict';

const { inspect } = require('util');

// What an array can have. Memory ends before that.
const MAX_COUNT = 2 ** 32;

/**
 * Bounds at equal distances.
 *
 * @param {number} start the first bound
 * @param {number} width the distance
 * @param {number} count how many, at least 1
 * @returns {number[]}
 * @throws {TypeError} if count is missing
 * @throws {Error} if count is below 1
 * @throws {RangeError} if count is not a whole number
 */
function linearBuckets(start, width, count) {
  if (count === undefined) throw new TypeError('linearBuckets(start, width, count) got no count');
  if (count < 1) throw new Error('Linear buckets needs a positive count');
  return Array.from(listOf(count), (_, i) => start + i * width);
}

/**
 * Bounds that grow by a factor.
 *
 * @param {number} start the first bound, above 0
 * @param {number} factor above 1
 * @param {number} count how many, at least 1
 * @returns {number[]}
 * @throws {TypeError} if count is missing
 * @throws {Error} if an argument is out of range
 * @throws {RangeError} if count is not a whole number
 */
function exponentialBuckets(start, factor, count) {
  if (start <= 0) throw new Error('Exponential buckets needs a positive start');
  if (count < 1) throw new Error('Exponential buckets needs a positive count');
  if (factor <= 1) throw new Error('Exponential buckets needs a factor greater than 1');
  if (count === undefined) throw new TypeError('exponentialBuckets(start, factor, count) got no count');
  let bound = start;
  return Array.from(listOf(count), (_, i) => (i === 0 ? bound : (bound *= factor)));
}

/**
 * @param {number} count
 * @returns {undefined[]}
 * @throws {RangeError} if it is not a length, with prom-client's text first
 */
function listOf(count) {
  const length = Number(count);
  if (Number.isInteger(length) && length < MAX_COUNT) return new Array(length);
  throw new RangeError(
    `Invalid array length: the count of buckets must be a whole number: ${inspect(count)}`,
  );
}

module.exports = { linearBuckets, exponentialBuckets };
