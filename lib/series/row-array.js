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

module.exports = { grown };
