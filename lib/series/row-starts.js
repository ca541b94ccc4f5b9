'use strict';

// When each row of a table began to count: seconds since 1970. The rows of most tables begin in the same
// second, or there is one: their table has a number. Otherwise it has a RowStarts.

const { grown } = require('./row-array');

const FEWEST_ROWS = 4;

/** The start of counts that are older than anybody knows. */
const UNKNOWN = 0;

/** The second is not known: a clock must be read. */
const UNREAD = -1;

/**
 * In which second rows start. To read a clock for each of them would take a fifth of the time of a new label
 * set. So they share the second in which the first one has started since a reader has seen which rows there
 * are: that is not later than the first use of any of them.
 */
const starting = {
  second: UNREAD,
  /** The first one since starts were read; perhaps that in which they were read. */
  first: UNREAD,
  /** Whether rows have lost since then what they had counted. They start later than they were read. */
  areLost: false,
};

/** To be called by whoever reads starts. */
function startsAreRead() {
  starting.second = starting.first = UNREAD;
  starting.areLost = false;
}

/** To be called when rows lose what they have counted. */
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

/** @typedef {number | RowStarts} Starts a number if it is that of all rows, or UNKNOWN */

class RowStarts {
  /** Changes with each start that is set; unique among all tables. */
  version = ++versions;

  /** @param {Int32Array} seconds by row, as unsigned numbers: there is space until 2106 */
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
 * @returns {number} when it began to count, seconds since 1970, or UNKNOWN
 */
function startOf(starts, row) {
  return typeof starts === 'number' ? starts : starts.seconds[row] >>> 0;
}

/**
 * @param {Starts} starts
 * @param {number} rowCount
 * @returns {RowStarts} a copy that has one for each row
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
