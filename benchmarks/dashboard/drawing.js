'use strict';

// Draws the open rows of docs/grafana-dashboard.json, with the names of the collapsed ones. This is not how
// Grafana looks: it shows which panels there are, and what is in them.

const { COLOURS } = require('../pictures/chart.js');

const COLUMNS = 3;
const WIDTH = 240;
const HEIGHT = 80;
const LABELS_WIDTH = 55;
const ROW_SPACE = 95; // for a legend of two lines, and the next title
const LINE_WIDTH = 1.5;
const RANGE = [COLOURS.ours, COLOURS['prom-client'], COLOURS['prometheus-io'], COLOURS.bare];

/** By Grafana's unit: how Vega prints the numbers of an axis. */
const LABELS = {
  s: "datum.value < 1 ? format(datum.value * 1000, '.3~g') + ' ms' : format(datum.value, '.3~g') + ' s'",
  bytes: "format(datum.value / 1e6, '.3~g') + ' MB'",
  percentunit: "format(datum.value * 100, '.3~g') + ' %'",
  ops: "format(datum.value, '.3~g') + '/s'",
  short: "format(datum.value, ',~r')",
};

/**
 * @typedef {{title: string, collapsed: boolean, panels: Panel[]}} Row
 * @typedef {{title: string, unit: string, isStacked: boolean, series: Series[]}} Panel
 * @typedef {{name: string, values: (number | null)[]}} Series
 */

/**
 * @param {{stepSeconds: number, rows: Row[]}} numbers
 * @returns {object} for Vega-Lite
 */
function dashboardSpec({ stepSeconds, rows }) {
  return {
    vconcat: rows.flatMap(({ title, collapsed, panels }) => [
      headingOf(`${collapsed ? '▸' : '▾'} ${title}`),
      ...(collapsed ? [] : [panelsOf(panels, stepSeconds)]),
    ]),
    spacing: 10,
    resolve: { scale: { color: 'independent' } },
  };
}

function headingOf(text) {
  return {
    data: { values: [{}] },
    width: COLUMNS * WIDTH,
    height: 12,
    view: { stroke: null },
    mark: { type: 'text', align: 'left', x: -LABELS_WIDTH, fontWeight: 'bold', color: COLOURS.ink },
    encoding: { text: { value: text } },
  };
}

function panelsOf(panels, stepSeconds) {
  return {
    concat: panels.map(panel => chartOf(panel, stepSeconds)),
    columns: COLUMNS,
    // By the frames of the panels, without their legends, so that the frames are in line.
    bounds: 'flush',
    spacing: { row: ROW_SPACE, column: LABELS_WIDTH + 20 },
    resolve: { scale: { color: 'independent' } },
  };
}

function chartOf({ title, unit, isStacked, series }, stepSeconds) {
  const names = series.map(({ name }) => name);
  const points = series.flatMap(({ name, values }) =>
    values.map((value, step) => ({ name, minute: (step * stepSeconds) / 60, value })),
  );
  const legend = {
    title: null,
    orient: 'bottom',
    columns: 2,
    labelFontSize: 10,
    symbolSize: 40,
    symbolType: 'square',
  };
  return {
    title: { text: title, fontSize: 11 },
    data: { values: points },
    width: WIDTH,
    height: HEIGHT,
    mark: isStacked
      ? { type: 'area', line: { strokeWidth: LINE_WIDTH }, fillOpacity: 0.2 }
      : { type: 'line', strokeWidth: LINE_WIDTH },
    encoding: {
      x: {
        field: 'minute',
        type: 'quantitative',
        axis: { title: null, grid: false, tickMinStep: 1, labelExpr: "datum.value + ' min'" },
      },
      y: {
        field: 'value',
        type: 'quantitative',
        stack: isStacked ? 'zero' : null,
        axis: { title: null, tickCount: 3, labelExpr: LABELS[unit] },
      },
      color: {
        field: 'name',
        type: 'nominal',
        sort: names,
        scale: { domain: names, range: RANGE.slice(0, names.length) },
        legend: names.join('') === '' ? null : legend,
      },
    },
  };
}

module.exports = { dashboardSpec };
