'use strict';

// Draws a soak over time, as one self-contained SVG: a panel for memory, one for descriptors and files, one
// for counts.

const { escaped, rounded, segment, text } = require('../shared/svg.js');
const { count, number } = require('../shared/table.js');
const { linesOf, warmUpOf } = require('./report.js');

const WIDTH = 900;
const PLOT = { left: 70, width: 620, height: 170 };
const HEADER = 60;
const PANEL_HEIGHT = 240;
const POINTS = 400; // of a line, at most
const MIB = 2 ** 20;
const COLOURS = { primary: '#0057a3', 'worker 1': '#a33b00' };
const TICKS = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const MOST_LETTERS = 40; // more would overlap
const MARKS = { 'worker killed': 'K', 'worker redeployed': 'R', 'thread killed': 'T', 'disk full': 'F' };

/**
 * @param {any} record
 * @param {{machine: string, date: string, minutes: number, workers: number}} about
 * @returns {string} the text of an SVG file
 */
function drawSoak(record, { machine, date, minutes, workers }) {
  const lines = linesOf(record);
  const ofKind = kinds => lines.filter(({ kind }) => kinds.includes(kind));
  const counts = key => record.scrapes.map(scrape => ({ at: scrape.at, value: scrape[key] }));
  const panels = [
    {
      title: 'Memory, MiB',
      lines: ofKind(['heap', 'rss']).map(line => ({
        name: `${line.name}, ${line.kind === 'rss' ? 'RSS' : 'heap'}`,
        colour: COLOURS[line.name],
        dash: line.kind === 'rss' ? '' : '6 3',
        points: line.points.map(({ at, value }) => ({ at, value: value / MIB })),
      })),
    },
    {
      title: 'Open descriptors, and files of snapshots',
      lines: ofKind(['descriptors', 'files']).map(line => ({
        name: line.kind === 'files' ? 'files' : `${line.name}, descriptors`,
        colour: line.kind === 'files' ? '#1a6b34' : COLOURS[line.name],
        dash: line.kind === 'files' ? '2 3' : '',
        points: line.points,
      })),
    },
    {
      title: 'Requests of the label sets in use, recorded and shown',
      lines: [
        { name: 'recorded', colour: '#999999', dash: '', wide: true, points: counts('recorded') },
        { name: 'shown', colour: '#0057a3', dash: '4 4', points: counts('shown') },
      ],
    },
  ];
  const height = HEADER + panels.length * PANEL_HEIGHT + 30;
  const differences = record.differences?.length ?? 0;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}"`,
    ' role="img" font-family="sans-serif" font-size="12" fill="#222222">\n',
    `<title>Soak of ${minutes} minutes</title>\n`,
    `<desc>${escaped(`${record.scrapes.length} pages, ${differences} differences`)}</desc>\n`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>\n`,
    text(20, 26, `${minutes} minutes under load, ${workers} workers`, 'font-size="18" font-weight="bold"'),
    text(20, 46, `${date}, ${machine}. ${count(differences)} differences between recorded and shown.`),
    ...panels.map((panel, index) => drawPanel(panel, record, HEADER + index * PANEL_HEIGHT)),
    text(
      20,
      height - 12,
      'Marks: K worker killed, R worker redeployed, T thread killed, F disk full. Grey: warm-up',
    ),
    '</svg>\n',
  ].join('');
}

function drawPanel({ title, lines }, { seconds, events }, panelTop) {
  const top = panelTop + 34;
  const bottom = top + PLOT.height;
  const most = Math.max(1, ...lines.flatMap(({ points }) => points.map(({ value }) => value))) * 1.05;
  const x = at => PLOT.left + Math.min(at / seconds, 1) * PLOT.width;
  const y = value => bottom - (value / most) * PLOT.height;
  const parts = [text(20, panelTop + 18, title, 'font-weight="bold"')];
  const warmUp = rounded(x(warmUpOf(seconds)) - PLOT.left);
  parts.push(
    `<rect x="${PLOT.left}" y="${top}" width="${warmUp}" height="${PLOT.height}" fill="#eeeeee"/>\n`,
  );
  for (const share of [0, 0.5, 1]) {
    const height = y((share * most) / 1.05);
    parts.push(segment(PLOT.left, height, PLOT.left + PLOT.width, height, 'stroke="#cccccc"'));
    parts.push(text(PLOT.left - 6, height + 4, TICKS.format((share * most) / 1.05), 'text-anchor="end"'));
    const minutes = `${number((share * seconds) / 60)} min`;
    parts.push(text(PLOT.left + share * PLOT.width, bottom + 16, minutes, 'text-anchor="middle"'));
  }
  const marked = events.filter(({ what }) => what in MARKS);
  for (const { at, what } of marked) {
    if (marked.length > MOST_LETTERS) parts.push(segment(x(at), top - 6, x(at), top - 2, 'stroke="#888888"'));
    else parts.push(text(x(at), top - 3, MARKS[what], 'font-size="8" text-anchor="middle"'));
  }
  lines.forEach(({ name, colour, dash, wide, points }, index) => {
    const path = thinned(points)
      .map(({ at, value }) => `${rounded(x(at))},${rounded(y(value))}`)
      .join(' ');
    const style = `stroke="${colour}" stroke-width="${wide ? 4 : 1.5}"${dash && ` stroke-dasharray="${dash}"`}`;
    parts.push(`<polyline points="${path}" fill="none" ${style}/>\n`);
    const height = top + 12 + index * 20;
    const left = PLOT.left + PLOT.width + 14;
    parts.push(segment(left, height - 4, left + 24, height - 4, style), text(left + 30, height, name));
  });
  return parts.join('');
}

/** A drawing of an hour needs no point for each second. */
function thinned(points) {
  const step = Math.ceil(points.length / POINTS);
  return points.filter((_, index) => index % step === 0);
}

module.exports = { drawSoak };
