'use strict';

const { setTimeout: wait } = require('node:timers/promises');
const { samples } = require('prom-client/testing');

const SCRAPE_EVERY_MS = 1000;

/** @typedef {{name: string, labels: Record<string, string>, value: number}} Sample */
/** @typedef {{at: number, samples: Sample[]}} Page `at` in ms */

/**
 * The pages that were scraped in a period. The methods compute what the PromQL functions of the same names
 * do, without extrapolation, because the window begins and ends with a scrape.
 */
class ScrapeWindow {
  #pages;

  /**
   * @param {Page[]} pages in order
   */
  constructor(pages) {
    this.#pages = pages;
  }

  get seconds() {
    return (this.#pages.at(-1).at - this.#pages[0].at) / 1000;
  }

  /**
   * The sum of the last values.
   *
   * @param {string} name
   * @param {Record<string, string | number>} [labels] that a sample must have
   * @returns {number}
   */
  last(name, labels) {
    return sum(this.#pages.at(-1), name, labels);
  }

  /** By how much a counter rose. Parameters as of {@link last}. */
  increase(name, labels) {
    return sum(this.#pages.at(-1), name, labels) - sum(this.#pages[0], name, labels);
  }

  /** By how much a counter rose in a second. Parameters as of {@link last}. */
  rate(name, labels) {
    return this.increase(name, labels) / this.seconds;
  }

  /** The sum of a gauge's rises, without its falls; a lower bound. Parameters as of {@link last}. */
  rises(name, labels) {
    const values = this.#pages.map(page => sum(page, name, labels));
    return values.reduce((total, value, i) => total + Math.max(0, value - values[Math.max(0, i - 1)]), 0);
  }

  /** The highest of all values that were scraped. Parameters as of {@link last}. */
  max(name, labels) {
    return Math.max(...this.#pages.map(page => sum(page, name, labels)));
  }

  /**
   * By how much each bucket of a histogram rose, summed over its series.
   *
   * @param {string} name without `_bucket`
   * @param {Record<string, string | number>} [labels]
   * @returns {{bound: number, count: number}[]} cumulative, by bound, the last bound is Infinity; empty if it
   *   has no series
   */
  buckets(name, labels) {
    const counts = new Map();
    for (const [page, sign] of [
      [this.#pages.at(-1), 1],
      [this.#pages[0], -1],
    ]) {
      for (const {
        labels: { le },
        value,
      } of select(page, `${name}_bucket`, labels)) {
        const bound = Number(le.replace('+Inf', 'Infinity'));
        counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
      }
    }
    return Array.from(counts, ([bound, count]) => ({ bound, count })).sort((a, b) => a.bound - b.bound);
  }
}

/**
 * PromQL's histogram_quantile: linear between the bounds of the bucket that the quantile falls into.
 *
 * @param {number} share from 0 to 1
 * @param {{bound: number, count: number}[]} buckets as of {@link ScrapeWindow#buckets}
 * @returns {number} NaN if nothing was observed; the highest finite bound if the quantile is above it
 */
function histogramQuantile(share, buckets) {
  const total = buckets.at(-1)?.count ?? 0;
  if (total === 0) return NaN;
  const rank = share * total;
  const index = buckets.findIndex(({ count }) => count >= rank);
  if (index === buckets.length - 1) return buckets.at(-2).bound;
  const { bound, count } = buckets[index];
  const { bound: lower, count: below } = buckets[index - 1] ?? { bound: 0, count: 0 };
  return lower + ((bound - lower) * (rank - below)) / (count - below);
}

function sum(page, name, labels) {
  // A series that does not exist yet counts as 0.
  return select(page, name, labels).reduce((total, { value }) => total + value, 0);
}

function select(page, name, wanted = {}) {
  const conditions = Object.entries(wanted);
  return page.samples.filter(
    sample =>
      sample.name === name && conditions.every(([label, value]) => sample.labels[label] === String(value)),
  );
}

/**
 * Scrapes at the start, once a second, and at the end.
 *
 * @param {import('../demo/scraper').Scraper} scraper
 * @param {number} seconds
 * @param {(window: ScrapeWindow) => void} onScrape called after each scrape, with what there is so far
 * @returns {Promise<ScrapeWindow>}
 */
async function scrapeFor(scraper, seconds, onScrape) {
  const pages = [await scrapePage(scraper)];
  const end = pages[0].at + seconds * 1000;
  while (pages.at(-1).at < end) {
    const next = Math.min(pages.at(-1).at + SCRAPE_EVERY_MS, end);
    await wait(Math.max(0, next - performance.now()));
    pages.push(await scrapePage(scraper));
    onScrape(new ScrapeWindow(pages));
  }
  return new ScrapeWindow(pages);
}

/** @param {import('../demo/scraper').Scraper} scraper */
async function scrapePage(scraper) {
  const at = performance.now();
  const { text } = await scraper.scrape();
  return { at, samples: await samples(text()) };
}

module.exports = { ScrapeWindow, histogramQuantile, scrapeFor, scrapePage };
