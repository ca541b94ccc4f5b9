'use strict';

/**
 * @param {string[]} titles
 * @param {string[][]} rows as many cells each
 * @returns {string} columns one under the other, aligned at the right
 */
function textTable(titles, rows) {
  const widths = titles.map((title, column) => Math.max(...[titles, ...rows].map(row => row[column].length)));
  const line = cells => cells.map((cell, column) => cell.padStart(widths[column])).join('   ');
  return [line(titles), '-'.repeat(line(titles).length), ...rows.map(line)].join('\n');
}

/** @param {number} share from 0 to 1 */
function percent(share) {
  return `${(share * 100).toFixed(1)} %`;
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return (bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0);
}

/** @param {number} seconds @returns {string} milliseconds in three digits, '-' for NaN */
function milliseconds(seconds) {
  if (Number.isNaN(seconds)) return '-';
  return (seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0);
}

module.exports = { textTable, percent, mebibytes, milliseconds };
