'use strict';

const REFRESH_MS = 250;

/**
 * @typedef {object} PhaseResult
 * @property {number} sent requests
 * @property {number} answered requests whose response was complete
 * @property {number} errors connections that failed, and requests that timed out
 * @property {number} timeouts those of the errors that timed out
 * @property {import('./latencies').Latencies} latencies
 * @property {{milliseconds: number, bytes: number}[]} scrapes
 * @property {Error[]} failedScrapes
 */

/**
 * Waits for the end of a load, scrapes meanwhile if there is a scraper, and shows the progress.
 *
 * @param {object} options
 * @param {string} options.name
 * @param {import('./load-generator').Load} options.load just started
 * @param {import('./scraper').Scraper} [options.scraper]
 * @param {import('./live-line').LiveLine} options.liveLine
 * @returns {Promise<PhaseResult>}
 */
async function runPhase({ name, load, scraper, liveLine }) {
  const show = () => liveLine.show(progressText(name, load, scraper));
  const timer = setInterval(show, REFRESH_MS);
  scraper?.start();
  try {
    const totals = await load.done;
    await scraper?.stop();
    show();
    return {
      ...totals,
      latencies: load.latencies,
      scrapes: scraper?.scrapes ?? [],
      failedScrapes: scraper?.failures ?? [],
    };
  } finally {
    clearInterval(timer);
    await scraper?.stop();
    liveLine.end();
  }
}

/** With the demo's defaults this fits a terminal of 80 columns. */
function progressText(name, load, scraper) {
  const [median, p99, p999] = load.latencies.quantiles([0.5, 0.99, 0.999]).map(digits);
  const scrape = scraper ? `  scrape ${digits(scraper.scrapes.at(-1)?.milliseconds ?? NaN)} ms` : '';
  const count = String(load.latencies.count).padStart(String(load.amount).length);
  const progress = `${name.padEnd(9)} ${count}/${load.amount} requests`;
  return `${progress}  P50 ${median}  P99 ${p99}  P99.9 ${p999} ms${scrape}`;
}

/** Always at least four characters wide, so that a line does not change its length. */
function digits(milliseconds) {
  const text = Number.isNaN(milliseconds) ? '-' : milliseconds.toFixed(milliseconds < 99.95 ? 1 : 0);
  return text.padStart(4);
}

module.exports = { runPhase, digits };
