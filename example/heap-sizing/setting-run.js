'use strict';

const { Scraper } = require('../demo/scraper');
const { scrapeFor, scrapePage, ScrapeWindow } = require('../concurrency/scrape-window');
const { ServiceProcess } = require('../concurrency/service-process');

const LIMIT = 64;
const CLIENTS = 2 * LIMIT;
// Share of a measurement's length, in which V8 compiles the code and grows the new space.
const WARM_UP_SHARE = 0.5;
const SHARE_OF_CAPACITY = 0.65;
const START = 0.5; // seconds that a service needs until it answers, roughly

/** @typedef {import('../concurrency/scrape-window').ScrapeWindow} Window */

/**
 * @param {number} seconds of the measurement itself
 * @returns {number} seconds that {@link measureSetting} takes, roughly
 */
function lengthOf(seconds) {
  return START + seconds * (1 + WARM_UP_SHARE);
}

/**
 * Runs the service once under a setting and a load.
 *
 * @param {object} options
 * @param {string} options.size MiB, or 'default'
 * @param {number} [options.rate] requests per second; default: as many as are answered
 * @param {number} options.seconds
 * @param {object} options.processes where processes are started
 * @param {import('../concurrency/load-process').LoadProcess} options.load
 * @param {(window: Window) => void} [options.onScrape]
 * @returns {Promise<{window: Window, sent: number, answered: number, failed: number, counted: number}>} what
 *   was scraped after warming up, and the totals of the whole run: requests by the load generator's count,
 *   tasks by the metrics
 */
async function measureSetting({ size, rate, seconds, processes, load, onScrape = () => {} }) {
  const nodeOptions = size === 'default' ? [] : [`--max-semi-space-size=${size}`];
  const service = processes.start(() => new ServiceProcess({ limit: LIMIT, nodeOptions }));
  await service.ready();
  const scraper = new Scraper(service.metricsUrl);
  try {
    load.start({ url: service.url, clients: CLIENTS, rate });
    await scrapeFor(scraper, seconds * WARM_UP_SHARE, onScrape);
    const window = await scrapeFor(scraper, seconds, onScrape);
    const totals = await load.stop();
    const end = new ScrapeWindow([await scrapePage(scraper)]);
    return { window, ...totals, counted: end.last('task_duration_seconds_count') };
  } finally {
    scraper.close();
    await service.end();
  }
}

/**
 * A rate that the service can serve with Node's own setting.
 *
 * @param {object} options as of {@link measureSetting}
 * @returns {Promise<number>} requests per second
 */
async function rateToTry({ processes, load, seconds, onScrape }) {
  const { window } = await measureSetting({ size: 'default', seconds, processes, load, onScrape });
  return Math.ceil(window.rate('task_duration_seconds_count') * SHARE_OF_CAPACITY);
}

module.exports = { lengthOf, measureSetting, rateToTry };
