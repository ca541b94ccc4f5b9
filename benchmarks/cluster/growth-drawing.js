'use strict';

// Draws how the cost of a scrape grows, as one self-contained SVG: a panel for each cost, both axes
// logarithmic. Lines can be distinguished without colour: a client has a dash pattern, a number of workers a
// marker, and every line has its name at its end.

const { CLIENTS, OURS } = require('../shared/clients.js');
const { AXES, curveTitle } = require('./growth.js');
const { escaped, rounded, segment, spread, text } = require('../shared/svg.js');
const { count } = require('../shared/table.js');

const MILLISECONDS = 'milliseconds';
const WALL = { title: 'Wall time of a scrape', unit: MILLISECONDS, value: ({ wall }) => wall };
const ALL = {
  title: 'CPU of all processes per scrape',
  unit: MILLISECONDS,
  value: ({ allProcesses }) => allProcesses,
};

/** By what grows. A value is null where a client has none. */
const PANELS = {
  samples: [
    WALL,
    {
      title: 'CPU of the primary’s main thread per scrape',
      unit: MILLISECONDS,
      value: ({ primaryMain }) => primaryMain,
    },
    ALL,
  ],
  workers: [
    WALL,
    {
      title: 'CPU of the primary’s main thread per scrape, for each worker',
      unit: MILLISECONDS,
      value: ({ primaryMain, workers }) => primaryMain / workers,
    },
    ALL,
    { title: 'Files in the directory of snapshots', unit: 'files', value: ({ files }) => files },
    {
      title: 'Open descriptors of the primary',
      unit: 'descriptors',
      value: ({ descriptors }) => descriptors,
    },
    { title: 'IPC per worker and scrape', unit: 'bytes', value: ({ ipcPerWorker }) => ipcPerWorker },
    { title: 'Peak memory of the primary', unit: 'MiB', value: ({ peakPrimary }) => peakPrimary },
    { title: 'Peak memory of the largest worker', unit: 'MiB', value: ({ peakWorker }) => peakWorker },
  ],
};

const WIDTH = 1010;
const PLOT = { left: 80, width: 680 };
const PLOT_HEIGHTS = { samples: 300, workers: 130 };
const HEADER = 58;
const AROUND_PLOT = 90; // its title above, ticks and axis label below
const PLOT_OFFSET = 34; // from the top of a panel
const NAME_GAP = 14; // between two labels, so they do not overlap
const NOTE_HEIGHT = 17;
const NOTE_LENGTH = 150; // characters that fit a line

const STYLES = [
  { stroke: '#a33b00', dash: '' },
  { stroke: '#0057a3', dash: '9 4' },
  { stroke: '#1a6b34', dash: '2 3' },
];
const SMALLEST = 0.05; // ms; a smaller difference of two windows is noise; a negative one has no logarithm

/**
 * @param {import('./growth.js').Growth} growth
 * @param {{machine: string, date: string}} where and when it was measured
 * @returns {string} the text of an SVG file
 * @throws {Error} if there is nothing to draw
 */
function drawGrowth({ curves, notes, axis = AXES.growth }, { machine, date }) {
  if (curves.length === 0) throw new Error('no curve to draw');
  const footer = footLines(notes);
  const plotHeight = PLOT_HEIGHTS[axis.key];
  const panelHeight = plotHeight + AROUND_PLOT;
  const panels = PANELS[axis.key]
    .map(panel => ({ ...panel, curves: curves.filter(({ points }) => hasAll(points, panel)) }))
    .filter(panel => panel.curves.length > 0);
  const footTop = HEADER + panels.length * panelHeight;
  const height = footTop + footer.length * NOTE_HEIGHT + 16;
  const workerCounts = [...new Set(curves.map(({ workers }) => workers))];
  const drawn = panels.map((panel, index) =>
    drawPanel(panel, { top: HEADER + index * panelHeight, plotHeight, workerCounts, axis }),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}"`,
    ' role="img" font-family="sans-serif" font-size="12" fill="#222222">\n',
    `<title>${axis.title}</title>\n`,
    `<desc>${escaped(curves.map(curveTitle).join('; '))}. ${escaped(notes.join('; '))}</desc>\n`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>\n`,
    text(20, 26, axis.title, 'font-size="18" font-weight="bold"'),
    text(
      20,
      46,
      `${date}, ${machine} (at the start). Medians; both axes logarithmic; ours is the body as bytes.`,
    ),
    ...drawn,
    ...footer.map((line, index) => text(20, footTop + 10 + index * NOTE_HEIGHT, line)),
    '</svg>\n',
  ].join('');
}

function footLines(notes) {
  const reach = `Values below ${SMALLEST} ms are drawn at ${SMALLEST} ms: smaller ones are within noise.`;
  return [...notes, reach].flatMap(wrapped);
}

function wrapped(note) {
  const lines = [''];
  for (const word of note.split(/\s+/)) {
    const line = lines.at(-1);
    if (line && line.length + word.length >= NOTE_LENGTH) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}

function hasAll(points, { value }) {
  return points.every(point => value(point) !== null);
}

function drawPanel({ title, unit, value, curves }, { top, plotHeight, workerCounts, axis }) {
  const plot = { ...PLOT, top: top + PLOT_OFFSET, height: plotHeight };
  const sizes = [...new Set(curves.flatMap(({ points }) => points.map(point => point[axis.key])))];
  const values = curves.flatMap(({ points }) => points.map(point => drawable(value(point))));
  const decades = decadesAround(values);
  const x = scale([Math.min(...sizes), Math.max(...sizes)], [plot.left + 16, plot.left + plot.width - 16]);
  const y = scale([10 ** decades[0], 10 ** decades.at(-1)], [plot.top + plot.height, plot.top]);
  const lines = curves.map(curve => ({
    curve,
    style: STYLES[CLIENTS.findIndex(({ key }) => key === curve.client)],
    marker: MARKERS[workerCounts.indexOf(curve.workers) % MARKERS.length],
    places: curve.points.map(point => [x(point[axis.key]), y(drawable(value(point)))]),
  }));
  return [
    '<g>\n',
    text(plot.left, top + 20, title, 'font-size="14" font-weight="bold"'),
    drawAxes(plot, { sizes, decades, x, y, label: axis.label, unit }),
    ...lines.map(drawLine),
    drawNames(lines, plot, { key: axis.key, largest: Math.max(...sizes) }),
    '</g>\n',
  ].join('');
}

function drawable(value) {
  return Math.max(value, SMALLEST);
}

/** Whole powers of ten, at least two of them. */
function decadesAround(values) {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.max(Math.ceil(Math.log10(Math.max(...values))), first + 1);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** A single value is drawn in the middle. */
function scale([from, to], [start, end]) {
  const extent = Math.log10(to / from);
  return value => start + (end - start) * (extent === 0 ? 0.5 : Math.log10(value / from) / extent);
}

function drawAxes(plot, { sizes, decades, x, y, label, unit }) {
  const right = plot.left + plot.width;
  const bottom = plot.top + plot.height;
  const horizontal = decades.flatMap(decade => [
    segment(plot.left, y(10 ** decade), right, y(10 ** decade), 'stroke="#d0d0d0"'),
    text(plot.left - 8, y(10 ** decade) + 4, count(10 ** decade), 'text-anchor="end"'),
  ]);
  const vertical = sizes.flatMap(size => [
    segment(x(size), plot.top, x(size), bottom, 'stroke="#eeeeee"'),
    text(x(size), bottom + 17, count(size), 'text-anchor="middle"'),
  ]);
  const middle = plot.top + plot.height / 2;
  return [
    ...vertical,
    ...horizontal,
    `<rect x="${plot.left}" y="${plot.top}" width="${plot.width}" height="${plot.height}" fill="none" stroke="#666666"/>\n`,
    text(plot.left + plot.width / 2, bottom + 36, label, 'text-anchor="middle"'),
    text(22, middle, unit, `text-anchor="middle" transform="rotate(-90 22 ${middle})"`),
  ].join('');
}

const MARKERS = [
  (x, y) => `<circle cx="${rounded(x)}" cy="${rounded(y)}" r="3.5"/>`,
  (x, y) => `<rect x="${rounded(x - 3.5)}" y="${rounded(y - 3.5)}" width="7" height="7"/>`,
  (x, y) => `<path d="M${rounded(x)} ${rounded(y - 5)}l5 9h-10z"/>`,
];

function drawLine({ curve, style, marker, places }) {
  const points = places.map(place => place.map(rounded).join(',')).join(' ');
  const dash = style.dash ? ` stroke-dasharray="${style.dash}"` : '';
  const width = curve.client === OURS ? 2.5 : 1.8;
  return [
    `<polyline points="${points}" fill="none" stroke="${style.stroke}" stroke-width="${width}"${dash}/>\n`,
    `<g fill="${style.stroke}">${places.map(([x, y]) => marker(x, y)).join('')}</g>\n`,
  ].join('');
}

/** Labels right of the plot, each at the end of its line, moved apart where they would overlap. */
function drawNames(lines, plot, ends) {
  const column = plot.left + plot.width + 24;
  const byHeight = [...lines].sort((one, other) => endOf(one)[1] - endOf(other)[1]);
  const heights = spread(
    byHeight.map(line => endOf(line)[1]),
    { gap: NAME_GAP, bottom: plot.top + plot.height },
  );
  return byHeight
    .map((line, index) => {
      const [x, y] = endOf(line);
      const { stroke } = line.style;
      return [
        segment(x + 6, y, column - 4, heights[index], `stroke="${stroke}" stroke-width="0.6"`),
        `<g fill="${stroke}">${line.marker(column + 5, heights[index])}</g>\n`,
        text(column + 14, heights[index] + 4, nameOf(line.curve, ends), `fill="${stroke}"`),
      ].join('');
    })
    .join('');
}

/** Includes the largest measured size if other lines go further. */
function nameOf(curve, { key, largest }) {
  const size = curve.points.at(-1)[key];
  return size < largest ? `${curveTitle(curve)} (to ${count(size)})` : curveTitle(curve);
}

function endOf({ places }) {
  return places.at(-1);
}

module.exports = { drawGrowth };
