'use strict';

// The scraper, in its own process: it reads pages like Prometheus, and checks them after the measurement.

const { setTimeout: sleep } = require('node:timers/promises');
const { checkBody, checkLines } = require('../cluster/body-check.js');
const { scrapeOverHttp } = require('../cluster/scraper.js');

const FIRST_AFTER = 0.2; // of an interval

/**
 * @typedef {object} Scraped
 * @property {number[]} milliseconds that each scrape took
 * @property {string[]} failures
 */

/** @type {{ending: AbortController, done: Promise<object>, expected: object}} */
let scraping;

const commands = {
  /** Starts to scrape. */
  start({ port, every, gzip, expected }) {
    const ending = new AbortController();
    scraping = { ending, expected, done: scrapeEvery(every * 1e3, { port, gzip }, ending.signal) };
    return {};
  },

  /** Resolves when the pending scrape is complete. */
  async stop() {
    const { ending, expected, done } = scraping;
    ending.abort();
    const { milliseconds, failures, bodies } = await done;
    for (const text of bodies) {
      const problems = checkLines(text(), expected);
      if (problems.length > 0) failures.push(`wrong body: ${problems.slice(0, 3).join('; ')}`);
    }
    return { milliseconds, failures };
  },

  /** Scrapes once and compares every number with what the workers have recorded. */
  async check({ port, gzip, expected, kind }) {
    const { text } = await scrapeOverHttp(port, { gzip });
    return { problems: checkBody(text(), expected, kind) };
  },
};

process.on('disconnect', () => process.exit(0));
process.on('message', async ({ id, command, settings }) => {
  try {
    process.send({ id, answer: await commands[command](settings) });
  } catch (error) {
    process.send({ id, error: String(error?.message ?? error) });
  }
});

/** A scrape that takes longer than the interval delays the next one, as with Prometheus. */
async function scrapeEvery(interval, { port, gzip }, signal) {
  const scraped = { milliseconds: [], failures: [], bodies: [] };
  await wait(interval * FIRST_AFTER, signal);
  while (!signal.aborted) {
    const began = performance.now();
    try {
      const { milliseconds, text } = await scrapeOverHttp(port, { gzip });
      scraped.milliseconds.push(milliseconds);
      scraped.bodies.push(text);
    } catch (error) {
      scraped.failures.push(error.message);
    }
    await wait(interval - (performance.now() - began), signal);
  }
  return scraped;
}

async function wait(milliseconds, signal) {
  await sleep(Math.max(milliseconds, 0), undefined, { signal }).catch(() => {}); // the segment is over
}
