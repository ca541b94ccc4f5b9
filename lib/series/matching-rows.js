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
  const { index } = table;
  /** @type {{position: number, id: number}[]} */
  const wanted = [];
  for (const name in labels) {
    const value = labels[name];
    const position = index?.positions.get(name);
    const dictionary =
      position === undefined || value === undefined ? undefined : index?.dictionaries[position];
    const id = dictionary?.find(`${value}`) ?? MISSING;
    // No row has this value.
    if (id === MISSING && value !== undefined) return [];
    if (position !== undefined) wanted.push({ position, id });
  }
  const rows = [];
  for (let row = 0; row < table.rowCount; row++) {
    if (wanted.every(({ position, id }) => index?.idAt(row, position) === id) && table.isLive(row))
      rows.push(row);
  }
  return rows;
}

module.exports = { matchingRows };
