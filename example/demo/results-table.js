'use strict';

const { digits } = require('./phase');

const ROWS = [
  { title: 'requests answered', text: phase => String(phase.answered) },
  { title: 'errors', text: phase => String(phase.errors) },
  { title: 'P50', text: phase => quantile(phase, 0.5) },
  { title: 'P99', text: phase => quantile(phase, 0.99) },
  { title: '  in the workers, native', text: ({ nativeP99 }) => optional(nativeP99) },
  { title: 'P99.9', text: phase => quantile(phase, 0.999) },
  { title: 'longest', text: phase => quantile(phase, 1) },
  { title: 'primary: CPU a scrape', text: (phase, unscraped) => cost('cpu', phase, unscraped) },
  { title: '  of its main thread', text: (phase, unscraped) => cost('mainThreadCpu', phase, unscraped) },
  { title: 'primary: longest section', text: ({ primary }) => milliseconds(primary.longestSection) },
  { title: 'scrapes', text: phase => String(phase.scrapes.length) },
  { title: 'median scrape', text: phase => medianScrape(phase.scrapes) },
  { title: 'scraped body as sent', text: phase => bodySize(phase.scrapes) },
];

/** Unscraped requests that wait so long wait for other programs. */
const BUSY_MILLISECONDS = 100;

const TITLE_WIDTH = Math.max(...ROWS.map(({ title }) => title.length));
const GAP = '   ';

/**
 * @param {import('./client-run').Measurement[]} measurements
 * @returns {string} the clients side by side, each unscraped and scraped
 */
function comparisonTable(measurements) {
  const columns = measurements.flatMap(({ unscraped, scraped }) => [[unscraped], [scraped, unscraped]]);
  const titles = measurements.flatMap(() => ['unscraped', 'scraped']);
  const widest = Math.max(...measurements.map(({ client }) => client.length));
  // Two columns with the gap between them are at least as wide as a client's name.
  const lines = linesOf(titles, columns, Math.ceil((widest - GAP.length) / 2));
  const pairWidth = (lines[0].length - TITLE_WIDTH) / measurements.length - GAP.length;
  const names = measurements.map(({ client }) => client.padStart(pairWidth));
  lines.unshift([''.padEnd(TITLE_WIDTH), ...names].join(GAP));
  lines.splice(2, 0, '-'.repeat(lines[0].length));
  return lines.join('\n');
}

/**
 * @param {import('./client-run').Measurement[]} measurements
 * @returns {string} the result in a line for each client, and whether it means anything
 */
function comparisonText(measurements) {
  const widest = Math.max(...measurements.map(({ client }) => client.length));
  const lines = measurements.map(({ client, unscraped, scraped }) => {
    const [before, after] = [unscraped, scraped].map(p99Of);
    const p99 = `P99 with ${client.padEnd(widest)}   ${milliseconds(before)} unscraped, ${milliseconds(after)}`;
    return `${p99} scraped every second: ${(after / before).toFixed(1)} times as long`;
  });
  for (const { client, unscraped, scraped } of measurements) {
    const cpu = cost('cpu', scraped, unscraped);
    const section = milliseconds(scraped.primary.longestSection);
    lines.push(
      `primary with ${client.padEnd(widest)}   ${cpu} of CPU per scrape, longest section ${section}`,
    );
  }
  for (const { client, unscraped, scraped } of measurements) {
    if (Number.isNaN(scraped.nativeP99)) continue;
    const [before, after] = [unscraped, scraped].map(({ nativeP99 }) => milliseconds(nativeP99));
    lines.push(
      `P99 in the workers of ${client}, by a native histogram   ${before} unscraped, ${after} scraped`,
    );
  }
  if (measurements.some(({ unscraped }) => p99Of(unscraped) > BUSY_MILLISECONDS)) {
    lines.push('Requests waited without scrapes, too: this machine is busy. Try a lower --rate, or later.');
    if (!Number.isNaN(measurements[0].scraped.primary.mainThreadCpu))
      lines.push(
        'What is said of the primary holds: the time in which it waited for a processor is left out.',
      );
  }
  return lines.join('\n');
}

function p99Of({ latencies }) {
  return latencies.quantiles([0.99])[0];
}

/** Lines of the same length: the columns' titles, then a line for each row. All columns are equally wide. */
function linesOf(titles, columns, leastWidth) {
  const cells = [titles, ...ROWS.map(({ text }) => columns.map(column => text(...column)))];
  const width = Math.max(leastWidth, ...cells.flat().map(cell => cell.length));
  return cells.map((values, row) =>
    [(ROWS[row - 1]?.title ?? '').padEnd(TITLE_WIDTH), ...values.map(value => value.padStart(width))].join(
      GAP,
    ),
  );
}

/** What the primary used for a scrape: its CPU time while scraped, beyond that of an equal time unscraped. */
function cost(key, { primary, scrapes, failedScrapes }, unscraped) {
  const count = scrapes.length + failedScrapes.length;
  if (count === 0 || Number.isNaN(primary[key])) return '-';
  const beyond = primary[key] - (unscraped.primary[key] / unscraped.primary.seconds) * primary.seconds;
  return milliseconds(Math.max(0, beyond / count));
}

function quantile({ latencies }, share) {
  return milliseconds(latencies.quantiles([share])[0]);
}

function medianScrape(scrapes) {
  if (scrapes.length === 0) return '-';
  const sorted = scrapes.map(scrape => scrape.milliseconds).sort((a, b) => a - b);
  return milliseconds(sorted[Math.ceil(sorted.length / 2) - 1]);
}

function optional(value) {
  return Number.isNaN(value) ? '-' : milliseconds(value);
}

function milliseconds(value) {
  return `${digits(value).trim()} ms`;
}

function bodySize(scrapes) {
  if (scrapes.length === 0) return '-';
  const { bytes } = scrapes.at(-1);
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(2)} MB`;
}

module.exports = { comparisonTable, comparisonText };
