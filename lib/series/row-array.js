'use strict';

/**
 * Makes space in an array that has a number for each row.
 *
 * @param {Int32Array} numbers
 * @param {number} needed minimum capacity, in rows
 * @param {number} [initial] the number that new rows get
 * @returns {Int32Array<ArrayBuffer>} a copy, at least twice as long
 */
function grown(numbers, needed, initial = 0) {
  const longer = new Int32Array(Math.max(numbers.length * 2, needed));
  longer.set(numbers);
  // Zeros are not written: the kernel provides the memory when it is used.
  return initial === 0 ? longer : longer.fill(initial, numbers.length);
}

/**
 * @param {Float64Array | undefined} numbers
 * @param {number} length
 * @returns {Float64Array} the same, or a longer copy
 */
function withSpace(numbers, length) {
  if (numbers !== undefined && numbers.length >= length) return numbers;
  const larger = new Float64Array(Math.max(length, (numbers?.length ?? 0) * 2));
  if (numbers !== undefined) larger.set(numbers);
  return larger;
}

module.exports = { grown, withSpace };
