'use strict';

// Draws the latency distribution of every run, one panel per round: the percentile on the x axis, the latency
// on the y axis. A client that stalls shows as a bold line far above the thin ones. All panels share a scale.

const { escaped, rounded, segment, spread, text } = require('../shared/svg.js');
const { count } = require('../shared/table.js');
const { LatencyHistogram } = require('./latency-histogram.js');
const { roundTitle } = require('./plan.js');
const { RUNS, fullTitleOf, titleOf } = require('./runs.js');

const TITLE = 'Latency of requests to a cluster that is scraped, and to one that is not';
const WIDTH = 1080;
const COLUMNS = 2;
const HEADER = 78;
const PANEL = { width: WIDTH / COLUMNS, height: 330 };
const PLOT = { left: 62, top: 34, width: 350, height: 240 };
const NAME_GAP = 14;
const FOOTER = 16;
const LEGEND_STEP = 215;

const TICKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999];
const NINES = 4; // the plot ends at 99.99 %
const STEPS = 80;
const LEAST = 0.1; // ms; smaller values are drawn here

/** Colours of the two schemes, each with a dash pattern, because some readers cannot distinguish colours. */
const STYLES = {
  bare: { light: '#6b6b6b', dark: '#a8a8a8', dash: '1 4' },
  'prom-client': { light: '#b33c00', dark: '#ff9357', dash: '8 3' },
  'prometheus-io': { light: '#0057a3', dark: '#6bb5ff', dash: '3 3' },
  ours: { light: '#13702f', dark: '#54d67c', dash: '' },
};
const SCHEMES = {
  light: { paper: '#ffffff', ink: '#222222', grid: '#dddddd' },
  dark: { paper: '#14171a', ink: '#e4e4e4', grid: '#3a3f45' },
};

/** @typedef {import('./measurement.js').MeasuredRound} MeasuredRound */

/**
 * @param {MeasuredRound[]} rounds
 * @param {{machine: string, date: string}} where and when it was measured
 * @returns {string} the text of an SVG file that needs nothing else and follows the reader's colour scheme
 * @throws {Error} if there is nothing to draw
 */
function drawRounds(rounds, { machine, date }) {
  const panels = rounds.map(panelOf).filter(({ curves }) => curves.length > 0);
  if (panels.length === 0) throw new Error('no run to draw');
  const height = HEADER + Math.ceil(panels.length / COLUMNS) * PANEL.height + FOOTER;
  const decades = decadesAround(
    panels.flatMap(({ curves }) => curves.flatMap(({ points }) => points.map(({ y }) => y))),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}"`,
    ' role="img" font-family="sans-serif" font-size="12">\n',
    `<title>${escaped(TITLE)}</title>\n`,
    `<desc>${escaped(rounds.map(({ round }) => roundTitle(round)).join('; '))}</desc>\n`,
    `<style>${styleSheet()}</style>\n`,
    `<rect class="paper" width="${WIDTH}" height="${height}"/>\n`,
    text(20, 28, TITLE, 'font-size="18" font-weight="bold"'),
    text(
      20,
      48,
      `${date}, ${machine}. All repetitions together; both axes logarithmic, the same in all panels.`,
    ),
    legend(panels),
    ...panels.map((panel, index) => drawPanel(panel, index, decades)),
    '</svg>\n',
  ].join('');
}

function styleSheet() {
  return `${rulesOf('light')}@media (prefers-color-scheme: dark) {${rulesOf('dark')}}`;
}

function rulesOf(scheme) {
  const { paper, ink, grid } = SCHEMES[scheme];
  const clients = Object.entries(STYLES).map(
    ([client, style]) =>
      `.of-${client} {stroke: ${style[scheme]};} text.of-${client} {stroke: none; fill: ${style[scheme]};}`,
  );
  return `.paper {fill: ${paper};} text {fill: ${ink};} .grid {stroke: ${grid};} .frame {stroke: ${ink}; fill: none;} ${clients.join(' ')} `;
}

function legend(panels) {
  const clients = Object.keys(STYLES).filter(client =>
    panels.some(({ curves }) => curves.some(({ run }) => run.client === client)),
  );
  const names = clients.map((client, index) => {
    const x = 20 + index * LEGEND_STEP;
    const places = [
      [x, 64],
      [x + 34, 64],
    ];
    return line(client, 2, places) + text(x + 40, 68, fullTitleOf(client), `class="of-${client}"`);
  });
  return [...names, text(20 + clients.length * LEGEND_STEP, 68, 'bold: scraped; thin: unscraped')].join('');
}

function panelOf({ round, segments }) {
  const curves = RUNS.map(run => ({
    run,
    points: pointsOf(segments.filter(segment => segment.run === run.key)),
  }));
  return { title: roundTitle(round), curves: curves.filter(({ points }) => points.length > 0) };
}

/** Ends at the last quantile that does not depend on a single request. */
function pointsOf(segments) {
  const all = new LatencyHistogram();
  for (const { histogram } of segments) all.add(new LatencyHistogram(histogram));
  if (all.total === 0) return [];
  const end = Math.min(NINES, Math.max(Math.log10(all.total) - 0.3, 0.3));
  const places = Array.from({ length: STEPS + 1 }, (_, step) => (end * step) / STEPS);
  const latencies = all.quantiles(places.map(nines => 1 - 10 ** -nines));
  return places.map((x, index) => ({ x, y: Math.max(latencies[index], LEAST) }));
}

/** Whole powers of ten, at least two of them. */
function decadesAround(values) {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.max(Math.ceil(Math.log10(Math.max(...values))), first + 1);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function drawPanel({ title, curves }, index, decades) {
  const left = (index % COLUMNS) * PANEL.width + PLOT.left;
  const top = HEADER + Math.floor(index / COLUMNS) * PANEL.height + PLOT.top;
  const plot = { left, top, right: left + PLOT.width, bottom: top + PLOT.height };
  const x = nines => plot.left + (PLOT.width * nines) / NINES;
  const extent = decades.at(-1) - decades[0];
  const y = latency => plot.bottom - (PLOT.height * (Math.log10(latency) - decades[0])) / extent;
  const lines = curves.map(({ run, points }) => ({
    run,
    places: points.map(point => [x(point.x), y(point.y)]),
  }));
  const fromThinToBold = [...lines].sort((one, other) => one.run.scraped - other.run.scraped);
  return [
    '<g>\n',
    text(plot.left, plot.top - 10, title, 'font-size="13" font-weight="bold"'),
    drawAxes(plot, decades, { x, y }),
    ...fromThinToBold.map(({ run, places }) => line(run.client, run.scraped ? 3 : 1.1, places)),
    drawNames(lines, plot),
    '</g>\n',
  ].join('');
}

function line(client, width, places) {
  const points = places.map(place => place.map(rounded).join(',')).join(' ');
  const dash = STYLES[client].dash ? ` stroke-dasharray="${STYLES[client].dash}"` : '';
  return `<polyline class="of-${client}" points="${points}" fill="none" stroke-width="${width}"${dash}/>\n`;
}

function drawAxes(plot, decades, { x, y }) {
  const horizontal = decades.flatMap(decade => [
    segment(plot.left, y(10 ** decade), plot.right, y(10 ** decade), 'class="grid"'),
    text(plot.left - 7, y(10 ** decade) + 4, count(10 ** decade), 'text-anchor="end"'),
  ]);
  const vertical = TICKS.map(share => ({ share, place: x(-Math.log10(1 - share)) })).flatMap(
    ({ share, place }) => [
      segment(place, plot.top, place, plot.bottom, 'class="grid"'),
      text(
        place,
        plot.bottom + 16,
        `P${Number((share * 100).toFixed(2))}`,
        'text-anchor="middle" font-size="11"',
      ),
    ],
  );
  const middle = (plot.top + plot.bottom) / 2;
  const side = rounded(plot.left - 46);
  return [
    ...vertical,
    ...horizontal,
    `<rect class="frame" x="${plot.left}" y="${plot.top}" width="${PLOT.width}" height="${PLOT.height}"/>\n`,
    text(
      side,
      middle,
      'latency, ms',
      `text-anchor="middle" transform="rotate(-90 ${side} ${rounded(middle)})"`,
    ),
  ].join('');
}

/** Labels right of the plot, each at the end of its line, moved apart where they would overlap. */
function drawNames(lines, plot) {
  const named = lines
    .filter(
      ({ run }) => run.scraped || !lines.some(other => other.run.client === run.client && other.run.scraped),
    )
    .filter(({ run }, index, all) => all.findIndex(other => other.run.client === run.client) === index)
    .map(({ run, places }) => ({ run, x: places.at(-1)[0], y: places.at(-1)[1] }))
    .sort((one, other) => one.y - other.y);
  const heights = spread(
    named.map(({ y }) => y),
    { gap: NAME_GAP, bottom: plot.bottom },
  );
  return named
    .map(({ run, x, y }, index) => {
      const name = run.scraped ? `${titleOf(run.client)}, scraped` : titleOf(run.client);
      const leader = segment(
        x + 2,
        y,
        plot.right + 14,
        heights[index],
        `class="of-${run.client}" stroke-width="0.6"`,
      );
      return leader + text(plot.right + 18, heights[index] + 4, name, `class="of-${run.client}"`);
    })
    .join('');
}

module.exports = { drawRounds };
