'use strict';

const { setTimeout: wait } = require('node:timers/promises');

/**
 * The operations of the service. A page of rows comes as JSON from a database, simulated by a timer. A task
 * holds the rows of all its pages until it has the last one, as handlers do. `weight` is the number of
 * requests for it in twenty.
 *
 * @type {Record<string, {weight: number, pages: number, rows: number, latencyMs: number,
 *   finish: (rows: object[]) => object}>}
 */
const OPERATIONS = {
  lookup: { weight: 11, pages: 1, rows: 20, latencyMs: 15, finish: firstRow },
  search: { weight: 6, pages: 3, rows: 150, latencyMs: 15, finish: bestRows },
  report: { weight: 3, pages: 6, rows: 300, latencyMs: 15, finish: totalsByRegion },
};

const REGIONS = ['north', 'east', 'south', 'west', 'centre', 'islands', 'coast', 'hills'];

const answers = new Map(Object.entries(OPERATIONS).map(([name, { rows }]) => [name, answerOfDatabase(rows)]));

/**
 * Runs one task.
 *
 * @param {string} operation one of {@link OPERATIONS}
 * @returns {Promise<object>} what to answer
 */
async function runTask(operation) {
  const { pages, latencyMs, finish } = OPERATIONS[operation];
  const rows = [];
  for (let page = 0; page < pages; page++) {
    await wait(latencyMs * (0.75 + 0.5 * Math.random()));
    for (const row of JSON.parse(answers.get(operation))) rows.push(article(row));
  }
  return finish(rows);
}

/** @returns {string[]} paths to ask for in turn, each operation as often as its weight says, well mixed */
function requestPaths() {
  const total = Object.values(OPERATIONS).reduce((sum, { weight }) => sum + weight, 0);
  const places = Object.entries(OPERATIONS).flatMap(([name, { weight }]) =>
    Array.from({ length: weight }, (_, i) => ({ name, place: ((i + 0.5) * total) / weight })),
  );
  return places.sort((a, b) => a.place - b.place).map(({ name }) => `/tasks/${name}`);
}

function answerOfDatabase(count) {
  const rows = Array.from({ length: count }, (_, id) => ({
    id,
    name: `Article number ${id}`,
    region: REGIONS[id % REGIONS.length],
    amount: (id * 7919) % 1000,
    net: ((id * 104729) % 100000) / 100,
    sold: `2024-0${1 + (id % 9)}-1${id % 10}T08:00:00Z`,
    tags: [`tag-${id % 17}`, `tag-${id % 23}`],
  }));
  return JSON.stringify(rows);
}

function article({ id, name, region, amount, net, sold, tags }) {
  return {
    id,
    name,
    region,
    amount,
    tags,
    price: net * 1.19,
    key: `${region}/${id}`,
    month: sold.slice(0, 7),
  };
}

function firstRow(rows) {
  return rows[0];
}

function bestRows(rows) {
  return rows.sort((a, b) => b.amount - a.amount || a.key.localeCompare(b.key)).slice(0, 10);
}

function totalsByRegion(rows) {
  const totals = {};
  for (const { region, month, price, amount } of rows) {
    const key = `${region} ${month}`;
    const total = (totals[key] ??= { price: 0, amount: 0, rows: 0 });
    total.price += price;
    total.amount += amount;
    total.rows++;
  }
  return totals;
}

module.exports = { OPERATIONS, runTask, requestPaths };
