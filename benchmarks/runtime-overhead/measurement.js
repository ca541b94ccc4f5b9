'use strict';

// Measures the demo's service with each set of default metrics, alternating in the same processes, in several
// clusters one after the other.

const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { MeasuringProcess } = require('../article/measuring-process.js');
const { scrapeOverHttp } = require('../cluster/scraper.js');
const { Tree } = require('../cluster/tree.js');
const { LANES, orderOf } = require('./lanes.js');
const { threadTimes, usedBetween } = require('./processor-time.js');

const SERVICE = path.join(__dirname, 'service-primary.js');
const WORKERS = 2;
const SAMPLES = 2000;
const RATE = 800; // requests a second, about a third of what two cores can do
const BLOCKS = 2; // of each kind and cluster
const SETTLE = 0.1; // seconds, until all threads are idle
const WARM_UP = 0.6; // seconds, with each lane
const SECTION_SCRAPES = { count: 6, every: 0.1 }; // seconds

/** The kinds of windows. */
const KINDS = {
  fixed: { title: 'fixed rate', load: { rate: RATE }, isScraped: true },
  saturated: { title: 'saturated', load: {}, isScraped: true },
  idle: { title: 'idle', isScraped: true },
  resting: { title: 'resting', isScraped: false },
};
// Rough guesses in seconds, for the progress report.
const START = 2;
const CHANGE = 0.2; // to another lane

/**
 * @typedef {object} Window a measurement of one lane
 * @property {string} lane
 * @property {number} block windows of one block were measured one right after the other
 * @property {number} seconds under load
 * @property {number} answered requests
 * @property {number} cpu milliseconds of primary and workers, all threads
 */

/**
 * @typedef {object} MeasuredCluster
 * @property {Window[]} fixed at a fixed rate of requests
 * @property {Window[]} saturated with as many requests as the service answers
 * @property {Window[]} idle without requests
 * @property {Window[]} resting without requests, and without scrapes
 * @property {{lane: string, hooks: number, collections: number, capture: number}[]} sections milliseconds, of
 *   each worker and scrape, at the fixed rate
 * @property {{hooks: number, collections: number, capture: number}[]} firstSections of each worker at its
 *   first scrape, with all default metrics
 */

/**
 * The steps of the progress report: per cluster the warm-up, the kinds of windows and the sections.
 *
 * @param {{clusters: number, seconds: number}} settings as of {@link measureOverhead}
 * @returns {{title: string, seconds: number}[]}
 */
function stepsOf({ clusters, seconds }) {
  const lanes = LANES.length;
  const ofCluster = [
    { title: 'warm-up', seconds: START + lanes * (CHANGE + WARM_UP) },
    ...Object.values(KINDS).map(({ title }) => ({
      title,
      seconds: BLOCKS * lanes * (CHANGE + seconds + SETTLE),
    })),
    { title: 'sections', seconds: lanes * (CHANGE + SECTION_SCRAPES.count * SECTION_SCRAPES.every) },
  ];
  return Array.from({ length: clusters }, (_, number) =>
    ofCluster.map(step => ({
      ...step,
      title: `overhead, cluster ${number + 1} of ${clusters}, ${step.title}`,
    })),
  ).flat();
}

/**
 * @param {object} settings
 * @param {number} settings.clusters
 * @param {number} settings.seconds how long a window is
 * @param {import('../shared/progress.js').Progress} settings.progress of the steps that {@link stepsOf} has
 * @returns {Promise<MeasuredCluster[]>}
 */
async function measureOverhead({ clusters, seconds, progress }) {
  const generator = new MeasuringProcess(path.join(__dirname, 'load.js'));
  const measured = [];
  try {
    for (let number = 0; number < clusters; number++) {
      progress.begin(); // which ends with the stage's warm-up
      const tree = await Tree.start({ workers: WORKERS, samples: SAMPLES }, SERVICE);
      try {
        measured.push(await new Stage(tree, generator, progress).measure(number, seconds));
      } finally {
        await tree.stop();
      }
    }
  } finally {
    generator.stop();
  }
  return measured;
}

/** One cluster and its load generator. */
class Stage {
  #tree;
  #generator;
  #progress;

  /**
   * @param {Tree} tree
   * @param {MeasuringProcess} generator
   * @param {import('../shared/progress.js').Progress} progress whose first step of a cluster is under way
   */
  constructor(tree, generator, progress) {
    this.#tree = tree;
    this.#generator = generator;
    this.#progress = progress;
  }

  /**
   * @param {number} number of the cluster
   * @param {number} seconds
   * @returns {Promise<MeasuredCluster>}
   */
  async measure(number, seconds) {
    const firstSections = await this.#firstSections();
    for (const [place, { key }] of LANES.entries()) {
      this.#progress.repetition(place, LANES.length);
      await this.#take(key);
      await this.#generator.call('run', { seconds: WARM_UP });
    }
    this.#progress.end();
    const measured = {};
    for (const kind of Object.keys(KINDS)) measured[kind] = await this.#windows(kind, number, seconds);
    return { ...measured, sections: await this.#sections(), firstSections };
  }

  async #windows(kind, number, seconds) {
    this.#progress.begin();
    const windows = [];
    for (let block = number * BLOCKS; block < (number + 1) * BLOCKS; block++) {
      for (const lane of orderOf(block)) {
        this.#progress.repetition(windows.length, BLOCKS * LANES.length);
        windows.push({ lane, block, ...(await this.#window(lane, seconds, KINDS[kind])) });
      }
    }
    this.#progress.end();
    return windows;
  }

  /** Makes every worker collect the default metrics of a lane, and waits until nothing else is pending. */
  async #take(lane) {
    await this.#tree.call('take', { lane });
    // Each time: servers close a connection after five seconds without a request.
    await this.#generator.call('aim', { port: this.#tree.servicePort });
    await this.#scrape(); // after which the primary knows the new series
    await sleep(SETTLE * 1e3);
  }

  #scrape() {
    return scrapeOverHttp(this.#tree.metricsPort, { gzip: false });
  }

  async #window(lane, seconds, { load, isScraped }) {
    await this.#take(lane);
    const pids = await this.#tree.call('pids');
    const before = threadTimes(pids);
    const began = performance.now();
    const scraping = isScraped ? this.#scrapeEachSecond(seconds) : sleep(seconds * 1e3);
    const { answered, failed } = load
      ? await this.#generator.call('run', { seconds, ...load })
      : { answered: 0, failed: 0 };
    await scraping;
    const underLoad = (performance.now() - began) / 1e3;
    await sleep(SETTLE * 1e3);
    const cpu = usedBetween(before, threadTimes(pids));
    if (failed > 0) throw new Error(`${failed} requests were not answered`);
    return { seconds: underLoad, answered, cpu };
  }

  /** In the middle of each second. */
  async #scrapeEachSecond(seconds) {
    const began = performance.now();
    for (let second = 0; second < seconds; second++) {
      const due = Math.min(second + 0.5, seconds) * 1e3;
      await sleep(due - (performance.now() - began));
      await this.#scrape();
    }
    await sleep(seconds * 1e3 - (performance.now() - began));
  }

  async #sections() {
    this.#progress.begin();
    const all = [];
    for (const [place, { key }] of LANES.entries()) {
      this.#progress.repetition(place, LANES.length);
      await this.#take(key);
      await this.#tree.call('timeSections');
      const { count, every } = SECTION_SCRAPES;
      const load = this.#generator.call('run', { seconds: count * every, rate: RATE });
      for (let scrape = 0; scrape < count; scrape++) {
        await sleep(every * 1e3);
        await this.#scrape();
        for (const sections of await this.#tree.call('sections')) all.push({ lane: key, ...sections });
      }
      await load;
      await this.#tree.call('endSections');
    }
    this.#progress.end();
    return all;
  }

  /** The first scrape, of code that has never run before. */
  async #firstSections() {
    await this.#tree.call('take', { lane: 'runtime' });
    await this.#tree.call('timeSections');
    await this.#scrape();
    const sections = await this.#tree.call('sections');
    await this.#tree.call('endSections');
    return sections;
  }
}

module.exports = { measureOverhead, stepsOf, RATE, SAMPLES, WORKERS };
