'use strict';

// The memory of a table's numbers: pages of Float64Array, so that growing never copies much. Doubling one
// array of 100 MB would take 31 to 52 ms, in the middle of a request. The first page starts small and
// doubles: applications have hundreds of metrics with a handful of series each.

const PAGE_NUMBERS = 16384; // 128 KB
const FIRST_ROWS = 4;

/** The shift for numbers that are all in one page, whatever their number. */
const ONE_PAGE = 31;

/**
 * @param {number} width numbers a row
 * @returns {number} a page has 2 to the power of this rows
 */
function pageShiftOf(width) {
  return Math.floor(Math.log2(Math.max(PAGE_NUMBERS / width, 1)));
}

/**
 * @param {number} shift
 * @returns {number} what a row number must be masked with to get its place in its page
 */
function pageMaskOf(shift) {
  return ~(-1 << shift);
}

/**
 * @param {number} width numbers a row
 * @returns {Float64Array}
 */
function firstPage(width) {
  return new Float64Array(Math.min(FIRST_ROWS, 1 << pageShiftOf(width)) * width);
}

/**
 * Provides the memory of a row.
 *
 * @param {Float64Array[]} pages
 * @param {number} row the first row without memory
 * @param {number} width numbers a row
 * @param {number} shift what pageShiftOf() returns for it
 * @returns {boolean} whether a page was replaced by a larger one
 */
function growPages(pages, row, width, shift) {
  const number = row >> shift;
  const rowsPerPage = 1 << shift;
  const page = pages[number];
  if (page === undefined) {
    pages.push(number === 0 ? firstPage(width) : new Float64Array(rowsPerPage * width));
    return false;
  }
  if ((row & (rowsPerPage - 1)) * width < page.length) return false;
  const larger = new Float64Array(page.length * 2);
  larger.set(page);
  pages[number] = larger;
  return true;
}

module.exports = { ONE_PAGE, firstPage, growPages, pageShiftOf, pageMaskOf };
