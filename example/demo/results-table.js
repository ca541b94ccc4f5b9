'use strict';

const { digits } = require('./phase');

const ROWS = [
  { title: 'requests answered', text: phase => String(phase.answered) },
  { title: 'errors', text: phase => String(phase.errors) },
  { title: 'P50', text: phase => quantile(phase, 0.5) },
  { title: 'P99', text: phase => quantile(phase, 0.99) },
  { title: 'P99.9', text: phase => quantile(phase, 0.999) },
  { title: 'longest', text: phase => quantile(phase, 1) },
  { title: 'scrapes', text: phase => String(phase.scrapes.length) },
  { title: 'median scrape', text: phase => medianScrape(phase.scrapes) },
  { title: 'scraped body as sent', text: phase => bodySize(phase.scrapes) },
];

/**
 * @param {Record<string, import('./phase').PhaseResult>} phases by the title of their column
 * @returns {string} the phases side by side
 */
function resultsTable(phases) {
  const cells = [
    ['', ...Object.keys(phases)],
    ...ROWS.map(({ title, text }) => [title, ...Object.values(phases).map(text)]),
  ];
  const widths = cells[0].map((_, column) => Math.max(...cells.map(row => row[column].length)));
  const lines = cells.map(([title, ...values]) =>
    [title.padEnd(widths[0]), ...values.map((value, column) => value.padStart(widths[column + 1]))].join(
      '   ',
    ),
  );
  lines.splice(1, 0, '-'.repeat(lines[0].length));
  return lines.join('\n');
}

function quantile({ latencies }, share) {
  return milliseconds(latencies.quantiles([share])[0]);
}

function medianScrape(scrapes) {
  if (scrapes.length === 0) return '-';
  const sorted = scrapes.map(scrape => scrape.milliseconds).sort((a, b) => a - b);
  return milliseconds(sorted[Math.ceil(sorted.length / 2) - 1]);
}

function milliseconds(value) {
  return `${digits(value).trim()} ms`;
}

function bodySize(scrapes) {
  if (scrapes.length === 0) return '-';
  const { bytes } = scrapes.at(-1);
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(2)} MB`;
}

module.exports = { resultsTable };
