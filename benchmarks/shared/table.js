'use strict';

// Numbers and Markdown tables that also line up in a terminal.

/**
 * @param {string[]} head
 * @param {string[][]} rows
 * @returns {string}
 */
function table(head, rows) {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column].length)));
  const line = cells => `| ${cells.map((text, column) => text.padEnd(widths[column])).join(' | ')} |`;
  const rule = `| ${widths.map(width => '-'.repeat(width)).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/**
 * Three digits are more than the noise leaves; large numbers keep all theirs.
 *
 * @param {number | null} value
 * @returns {string}
 */
function number(value) {
  if (value === null || Number.isNaN(value)) return '–';
  if (Math.abs(value) >= 1000) return count(Math.round(value));
  if (Math.abs(value) >= 100) return value.toFixed(0);
  if (Number.isInteger(value)) return String(value);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** @param {number} value */
function count(value) {
  return value.toLocaleString('en');
}

module.exports = { table, number, count };
