'use strict';

// Draws how the cost of a scrape grows: a panel for each cost. By workers there are only costs that other
// programs on the machine do not change: no times.

const { CLIENTS, fullTitleOf } = require('../shared/clients.js');
const { COLOURS, logarithmic } = require('../pictures/chart.js');
const { AXES } = require('./growth.js');

/** By what grows. A value is null where a client has none. */
const PANELS = {
  samples: [
    { title: 'Wall time of a scrape', unit: 'ms', key: 'wall' },
    { title: 'CPU of the primary’s main thread per scrape', unit: 'ms', key: 'primaryMain' },
    { title: 'CPU of all processes per scrape', unit: 'ms', key: 'allProcesses' },
  ],
  workers: [
    { title: 'IPC per worker and scrape', unit: 'bytes', key: 'ipcPerWorker' },
    { title: 'Open descriptors of the primary', unit: 'descriptors', key: 'descriptors' },
    { title: 'Files in the directory of snapshots', unit: 'files', key: 'files' },
    { title: 'Peak memory of the primary', unit: 'MiB', key: 'peakPrimary' },
    { title: 'Peak memory of the largest worker', unit: 'MiB', key: 'peakWorker' },
  ],
};

const SMALLEST = 0.05; // ms; a smaller difference of two windows is noise; a negative one has no logarithm

/**
 * @param {{date: string, machine: string, curves: import('./growth.js').Curve[], notes: string[]}} numbers
 *   benchmarks/pictures/growth.json and workers.json
 * @returns {object} for Vega-Lite
 * @throws {Error} if there is nothing to draw
 */
function growthSpec({ curves, notes, date, machine }) {
  if (curves.length === 0) throw new Error('no curve to draw');
  const axis = 'samples' in curves[0].points[0] ? AXES.growth : AXES.workers;
  const panels = PANELS[axis.key].map(panel => panelSpec(panel, curves, axis)).filter(Boolean);
  const scales = axis.key === 'samples' ? ' The axes are logarithmic.' : '';
  const clients = [...new Set(curves.map(({ client }) => fullTitleOf(client)))].join(', ');
  const subtitle = [`Medians: ${clients}.${scales}`, `${date}, ${machine} (at the start).`, ...notes, ''];
  return { title: { text: axis.title, subtitle }, columns: 2, concat: panels, spacing: 30 };
}

function panelSpec({ title, unit, key }, curves, axis) {
  const values = curves.flatMap(({ client, workers, points }) =>
    points
      .filter(point => typeof point[key] === 'number')
      .map(point => ({
        client: fullTitleOf(client),
        workers: `${workers} workers`,
        size: point[axis.key],
        value: Math.max(point[key], SMALLEST),
      })),
  );
  if (values.length === 0) return undefined;
  const sizes = [...new Set(values.map(({ size }) => size))];
  const isLogarithmic = axis.key === 'samples';
  const scale = { type: isLogarithmic ? 'log' : 'linear', domain: [sizes[0], sizes.at(-1)] };
  return {
    title: { text: title, fontSize: 12 },
    width: 330,
    height: 220,
    data: { values },
    mark: { type: 'line', strokeWidth: 2, point: { size: 50, filled: true } },
    encoding: {
      x: {
        field: 'size',
        type: 'quantitative',
        scale,
        axis: { title: axis.label, values: sizes, format: '~s' },
      },
      y: isLogarithmic
        ? logarithmic('value', values, unit)
        : { field: 'value', type: 'quantitative', axis: { title: unit } },
      ...looksOf(curves),
    },
  };
}

/** One curve needs no legend. */
function looksOf(curves) {
  const clients = CLIENTS.map(({ key }) => key).filter(key => curves.some(({ client }) => client === key));
  const color = {
    field: 'client',
    scale: { domain: clients.map(fullTitleOf), range: clients.map(key => COLOURS[key]) },
    legend: curves.length > 1 ? { title: null } : null,
  };
  if (curves.every(({ workers }) => workers === undefined)) return { color };
  const counts = [...new Set(curves.map(({ workers }) => `${workers} workers`))];
  const legend = { title: null, symbolStrokeColor: COLOURS.ink, symbolFillColor: COLOURS.ink };
  return { color, detail: { field: 'workers' }, shape: { field: 'workers', sort: counts, legend } };
}

module.exports = { growthSpec };
