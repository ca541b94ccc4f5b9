'use strict';

const { MISSING } = require('./label-dictionary');

/**
 * The live rows that have some labels, whatever their other labels are.
 *
 * @param {import('./series-table').SeriesTable} table
 * @param {Record<string, unknown>} labels a value of undefined stands for rows without that label
 * @returns {number[]}
 */
function matchingRows(table, labels) {
  let rows = [...table.liveRows()];
  for (const name in labels) {
    const value = labels[name];
    const position = table.index?.positions.get(name);
    if (table.index === undefined || position === undefined) {
      // No row has this label.
      if (value !== undefined) return [];
      continue;
    }
    const { index } = table;
    const id = value === undefined ? MISSING : index.dictionaries[position].find(`${value}`);
    if (value !== undefined && id === MISSING) return [];
    rows = rows.filter(row => index.idAt(row, position) === id);
  }
  return rows;
}

module.exports = { matchingRows };
