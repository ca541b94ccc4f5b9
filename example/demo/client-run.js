'use strict';

const { NATIVE_HISTOGRAM } = require('./application-metrics');
const { ClusterProcess } = require('./cluster-process');
const { LoadGenerator } = require('./load-generator');
const { quantileBetween, readNativeHistogram } = require('./native-histogram');
const { runPhase } = require('./phase');
const { Scraper } = require('./scraper');
const { readTotals } = require('./totals-check');

const WARM_UP_SECONDS = 3;

/**
 * @typedef {object} Primary
 * @property {number} cpu milliseconds in the phase, all threads
 * @property {number} mainThreadCpu milliseconds in the phase; NaN where it is unknown
 * @property {number} seconds length of the phase
 * @property {number} longestSection milliseconds, see main-thread.js
 */

/**
 * @typedef {import('./phase').PhaseResult & {primary: Primary, nativeP99: number}} Phase nativeP99:
 *   milliseconds, by the native histogram of the workers; NaN if the library has none
 */

/**
 * @typedef {object} Measurement
 * @property {string} client
 * @property {Phase} warmUp
 * @property {Phase} unscraped
 * @property {Phase} scraped
 * @property {{counted: number, arrived: number, exposition: string}} totals
 */

/** A cluster with one client library under load: first unscraped, then scraped every second. */
class ClientRun {
  #client;
  #options;
  #liveLine;
  #cluster;
  #scraper;
  #loadGenerator;
  #cleanedUp;

  /**
   * @param {string} client one of the names that `--client` accepts
   * @param {import('./options').DemoOptions} options
   * @param {import('./live-line').LiveLine} liveLine shows the phase in progress
   */
  constructor(client, options, liveLine) {
    this.#client = client;
    this.#options = options;
    this.#liveLine = liveLine;
  }

  /** @returns {number[]} the processes that were started */
  get pids() {
    return [...(this.#cluster?.pids ?? []), this.#loadGenerator?.pid].filter(Boolean);
  }

  get metricsUrl() {
    return this.#cluster.metricsUrl;
  }

  get applicationUrl() {
    return this.#cluster.applicationUrl;
  }

  /** @returns {Promise<Measurement>} */
  async measure() {
    const { workers, samples, seconds } = this.#options;
    const client = this.#client;
    this.#cluster = new ClusterProcess({ client, workers, samples, defaultMetrics: 'runtime' });
    this.#loadGenerator = new LoadGenerator();
    await this.#cluster.ready();
    this.#scraper = new Scraper(this.#cluster.metricsUrl);
    const warmUp = await this.#phase('warm-up', Math.min(WARM_UP_SECONDS, seconds));
    await this.#scraper.scrape(); // the first one compiles code
    const unscraped = await this.#phase('unscraped', seconds);
    const scraped = await this.#phase('scraped', seconds, this.#scraper);
    return { client, warmUp, unscraped, scraped, totals: await readTotals(this.#cluster, this.#scraper) };
  }

  async #phase(name, seconds, scraper) {
    const bucketsBefore = await this.#readBuckets();
    const before = await this.#readPrimary();
    const { rate } = this.#options;
    const url = this.#cluster.applicationUrl;
    const load = this.#loadGenerator.start({ url, rate, amount: rate * seconds });
    const result = await runPhase({ name, load, scraper, liveLine: this.#liveLine });
    const after = await this.#readPrimary();
    const used = key => after[key] - before[key];
    const primary = { cpu: used('cpu'), mainThreadCpu: used('mainThreadCpu'), seconds: used('at') / 1e3 };
    const buckets = await this.#readBuckets();
    const nativeP99 = buckets ? quantileBetween(bucketsBefore, buckets, 0.99) * 1e3 : NaN;
    return { ...result, primary: { ...primary, longestSection: after.longestSection }, nativeP99 };
  }

  #readBuckets() {
    return readNativeHistogram(this.#cluster.metricsUrl, NATIVE_HISTOGRAM);
  }

  async #readPrimary() {
    return { ...(await this.#cluster.primary()), at: performance.now() };
  }

  /**
   * Ends what was started. May be called at any time, and again.
   *
   * @returns {Promise<boolean>} whether the cluster ended when asked, and did not have to be killed
   */
  cleanUp() {
    this.#cleanedUp ??= this.#cleanUp();
    return this.#cleanedUp;
  }

  async #cleanUp() {
    await this.#loadGenerator?.stop();
    // Waits for a scrape in progress: without workers to answer, prom-client would keep its primary for five
    // seconds.
    await this.#scraper?.stop();
    this.#scraper?.close();
    return (await this.#cluster?.stop()) ?? true;
  }
}

module.exports = { ClientRun };
