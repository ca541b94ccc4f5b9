'use strict';

// When each row of a table started to count, in seconds since 1970. If all rows started in the same second,
// as in most tables, this is one number. Otherwise it is a RowStarts.

const { grown } = require('./row-array');

const FEWEST_ROWS = 4;

/** Start of counts whose age is unknown. */
const UNKNOWN = 0;

/** The current second is not known: the clock must be read. */
const UNREAD = -1;

/**
 * The second in which new rows start. Reading the clock for each row would take a fifth of the time of a new
 * label set. So all rows that start between two reads of starts share the second of the first of them, which
 * is not later than the first use of any of them.
 */
const starting = {
  second: UNREAD,
  /** The earliest second since starts were read; it may be the second of that read itself. */
  first: UNREAD,
  /** Whether rows have lost their counts since then: they must start after that read. */
  areLost: false,
};

/** To be called whenever starts are read. */
function startsAreRead() {
  starting.second = starting.first = UNREAD;
  starting.areLost = false;
}

/** To be called when rows lose their counts. */
function countsAreLost() {
  starting.areLost = true;
  if (starting.second === starting.first) starting.second = UNREAD;
}

/** @returns {number} seconds since 1970 */
function startingSecond() {
  if (starting.second !== UNREAD) return starting.second;
  const second = (Date.now() / 1000) >>> 0;
  if (starting.first === UNREAD) starting.first = second;
  if (second !== starting.first || !starting.areLost) starting.second = second;
  return second;
}

let versions = 0;

/** @typedef {number | RowStarts} Starts a number if all rows have the same start, or UNKNOWN */

class RowStarts {
  /** Changes with each start that is set; unique among all tables. */
  version = ++versions;

  /** @param {Int32Array} seconds by row, as unsigned numbers, which last until 2106 */
  constructor(seconds) {
    this.seconds = seconds;
  }

  /**
   * @param {number} row
   * @param {number} second
   */
  set(row, second) {
    if (row >= this.seconds.length) this.seconds = grown(this.seconds, row + 1);
    this.seconds[row] = second;
    this.version = ++versions;
  }
}

/**
 * @param {Starts} starts
 * @param {number} row
 * @returns {number} when it started to count, seconds since 1970, or UNKNOWN
 */
function startOf(starts, row) {
  return typeof starts === 'number' ? starts : starts.seconds[row] >>> 0;
}

/**
 * @param {Starts} starts
 * @param {number} rowCount
 * @returns {RowStarts} a copy with a start for each row
 */
function startsByRow(starts, rowCount) {
  const seconds = typeof starts === 'number' ? undefined : starts.seconds;
  const length = Math.max(rowCount, FEWEST_ROWS);
  return new RowStarts(seconds?.slice() ?? new Int32Array(length).fill(/** @type {number} */ (starts)));
}

/**
 * @param {Starts} starts
 * @param {number} rowCount
 * @returns {Starts}
 */
function copyOfStarts(starts, rowCount) {
  return typeof starts === 'number' ? starts : startsByRow(starts, rowCount);
}

/**
 * @param {Starts} starts
 * @returns {number} changes with each start that is set
 */
function versionOf(starts) {
  return typeof starts === 'number' ? starts : starts.version;
}

module.exports = {
  UNKNOWN,
  RowStarts,
  starting,
  startsAreRead,
  countsAreLost,
  startingSecond,
  startOf,
  startsByRow,
  copyOfStarts,
  versionOf,
};
