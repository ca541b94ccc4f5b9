'use strict';

// Draws quantiles of a classic and of a native histogram beside the true ones.

const { COLOURS, logarithmic } = require('../pictures/chart.js');

const LINES = [
  { key: 'truth', title: 'all observations, sorted', colour: COLOURS.bare, dash: [1, 0], width: 7 },
  {
    key: 'classic',
    title: 'classic histogram, default buckets',
    colour: COLOURS['prom-client'],
    dash: [7, 3],
    width: 3,
  },
  { key: 'native', title: 'native histogram, factor 1.1', colour: COLOURS.ours, dash: [1, 0], width: 2 },
];
const MILLISECONDS = 1000;

/**
 * @param {{date: string, machine: string,
 *   quantiles: {nines: number, truth: number, classic: number, native: number}[]}} numbers seconds; `nines`
 *   is 2 for P99
 * @returns {object} for Vega-Lite
 */
function quantilesSpec({ date, machine, quantiles }) {
  const values = LINES.flatMap(({ key, title }) =>
    quantiles.map(quantile => ({ nines: quantile.nines, line: title, ms: quantile[key] * MILLISECONDS })),
  );
  const scaleOf = property => ({
    domain: LINES.map(({ title }) => title),
    range: LINES.map(line => line[property]),
  });
  const encoded = property => ({
    field: 'line',
    sort: null,
    scale: scaleOf(property),
    legend: { title: null, orient: 'bottom', symbolType: 'stroke' },
  });
  return {
    title: {
      text: 'Quantiles of 20,000 requests, in milliseconds',
      subtitle: [`The vertical axis is logarithmic. ${date}, ${machine}.`, ''],
    },
    width: 620,
    height: 330,
    data: { values },
    mark: { type: 'line' },
    encoding: {
      x: {
        field: 'nines',
        type: 'quantitative',
        axis: {
          title: 'quantile',
          values: [0, 0.30103, 1, 2, 3],
          labelExpr: "'P' + format(100 - 100 * pow(10, -datum.value), '.3~f')",
        },
      },
      y: logarithmic('ms', values, 'ms'),
      color: encoded('colour'),
      strokeDash: encoded('dash'),
      strokeWidth: encoded('width'),
    },
  };
}

module.exports = { quantilesSpec };
