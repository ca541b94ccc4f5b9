'use strict';

const http = require('node:http');
const { gunzipSync } = require('node:zlib');

/** What Prometheus sends with a scrape. */
const SCRAPE_HEADERS = {
  accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
  'accept-encoding': 'gzip',
};
const TIMEOUT_MS = 10000;

/** Scrapes a URL over one keep-alive connection, as Prometheus does. */
class Scraper {
  #url;
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  #timer;
  #running;

  /** @param {string} url */
  constructor(url) {
    this.#url = url;
    /** @type {{milliseconds: number, bytes: number}[]} what {@link start} has scraped */
    this.scrapes = [];
    /** @type {Error[]} scrapes of {@link start} that failed */
    this.failures = [];
  }

  /**
   * Scrapes once.
   *
   * @returns {Promise<{milliseconds: number, bytes: number, text: () => string}>} time until the last byte,
   *   size as sent, and the text
   * @throws {Error} when the answer is not 200 or takes longer than ten seconds
   */
  scrape() {
    const start = performance.now();
    return new Promise((resolve, reject) => {
      const request = http.get(this.#url, {
        agent: this.#agent,
        headers: SCRAPE_HEADERS,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      request.on('error', reject);
      request.on('response', response => {
        const chunks = [];
        response.on('data', chunk => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const milliseconds = performance.now() - start;
          if (response.statusCode !== 200) {
            reject(new Error(`${this.#url} answered ${response.statusCode}`));
            return;
          }
          const body = Buffer.concat(chunks);
          const zipped = response.headers['content-encoding'] === 'gzip';
          resolve({
            milliseconds,
            bytes: body.length,
            text: () => String(zipped ? gunzipSync(body) : body),
          });
        });
      });
    });
  }

  /** Scrapes every second from now on, one scrape at a time. */
  start() {
    const scrapeNow = () => {
      this.#running ??= this.#scrapeAndRecord().finally(() => {
        this.#running = undefined;
      });
    };
    this.#timer = setInterval(scrapeNow, 1000);
    scrapeNow();
  }

  async #scrapeAndRecord() {
    try {
      const { milliseconds, bytes } = await this.scrape();
      this.scrapes.push({ milliseconds, bytes });
    } catch (error) {
      this.failures.push(error);
    }
  }

  /** Resolves when the scrape in progress, if any, has ended. */
  async stop() {
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Closes the connection. */
  close() {
    this.#agent.destroy();
  }
}

module.exports = { Scraper };
