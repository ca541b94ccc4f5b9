'use strict';

// Draws charts: a Vega-Lite specification becomes the text of an SVG file that loads nothing and follows the
// reader's colour scheme. Vega is installed from npm, into this folder, when the first chart is drawn.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const TIMEOUT = 300_000; // ms, of the installation
const ROOT = path.join(__dirname, '..', '..');

/** Colours by role and by client; on paper, and what the style sheet makes of them on a dark screen. */
const COLOURS = {
  paper: '#ffffff',
  ink: '#222222',
  grid: '#dddddd',
  shade: '#eeeeee',
  bare: '#6b6b6b',
  'prom-client': '#b33c00',
  'prometheus-io': '#0057a3',
  ours: '#13702f',
};
const DARK = {
  paper: '#14171a',
  ink: '#e4e4e4',
  grid: '#3a3f45',
  shade: '#24292e',
  bare: '#a8a8a8',
  'prom-client': '#ff9357',
  'prometheus-io': '#6bb5ff',
  ours: '#54d67c',
};

const TEXT = { labelColor: COLOURS.ink, titleColor: COLOURS.ink, labelFontSize: 12, titleFontSize: 12 };
const CONFIG = {
  background: COLOURS.paper,
  padding: 16,
  font: 'sans-serif',
  axis: {
    ...TEXT,
    gridColor: COLOURS.grid,
    domainColor: COLOURS.ink,
    tickColor: COLOURS.ink,
    titleFontWeight: 'normal',
    labelFlush: false,
  },
  // One below the other: beside each other, names in a wide font would overlap.
  legend: { ...TEXT, columns: 1, labelLimit: 0, symbolSize: 120, symbolStrokeWidth: 3 },
  header: TEXT,
  title: {
    anchor: 'start',
    frame: 'group',
    color: COLOURS.ink,
    fontSize: 14,
    subtitleColor: COLOURS.ink,
    subtitleFontSize: 12,
  },
  text: { color: COLOURS.ink, fontSize: 12 },
  view: { stroke: COLOURS.grid },
};

/**
 * @param {object} specification of Vega-Lite, with its data, and with colours of {@link COLOURS} only
 * @returns {Promise<string>} the text of an SVG file
 * @throws {Error} if Vega cannot be installed
 */
async function draw(specification) {
  const { vega, vegaLite } = await loadVega();
  const { spec } = vegaLite.compile({ ...specification, config: CONFIG });
  const svg = await new vega.View(vega.parse(spec), { renderer: 'none' }).toSVG();
  return `${svg.replace('>', `><style>${darkRules()}</style>`)}\n`;
}

/**
 * Draws into a file. Numbers are worth more than their picture: if Vega cannot be installed, that is printed.
 *
 * @param {string} file
 * @param {object} specification see {@link draw}
 * @returns {Promise<string[]>} the file, or nothing
 */
async function drawInto(file, specification) {
  try {
    fs.writeFileSync(file, await draw(specification));
    return [file];
  } catch (error) {
    console.error(`${path.basename(file)} is not drawn: ${error.message}`);
    return [];
  }
}

/** A rule of a style sheet overrules the colour that an element has as an attribute. */
function darkRules() {
  const rules = Object.entries(COLOURS).flatMap(([role, colour]) =>
    ['fill', 'stroke'].map(property => `[${property}="${colour}"]{${property}:${DARK[role]}}`),
  );
  return `@media (prefers-color-scheme:dark){${rules.join('')}}`;
}

async function loadVega() {
  // Does nothing if they are installed.
  const folder = path.relative(ROOT, __dirname);
  const script = path.join(ROOT, 'scripts', 'ensure-dependencies.js');
  const { status, stderr } = spawnSync(process.execPath, [script, folder], {
    encoding: 'utf8',
    timeout: TIMEOUT,
  });
  if (status !== 0) throw new Error(`Vega could not be installed by npm: ${stderr}`);
  const [vega, vegaLite] = await Promise.all([import('vega'), import('vega-lite')]);
  return { vega, vegaLite };
}

/**
 * @param {string} field
 * @param {Record<string, any>[]} rows all that are drawn
 * @param {string} title of the axis
 * @returns {object} for Vega-Lite: a logarithmic scale with whole powers of ten, at least two of them
 */
function logarithmic(field, rows, title) {
  const values = rows.map(row => row[field]);
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.max(Math.ceil(Math.log10(Math.max(...values))), first + 1);
  const decades = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
  const scale = { type: 'log', domain: [decades[0], decades.at(-1)] };
  return { field, type: 'quantitative', scale, axis: { title, values: decades, format: ',~r' } };
}

module.exports = { COLOURS, draw, drawInto, logarithmic };
