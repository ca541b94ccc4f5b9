'use strict';

// Measures the effect of a scrape every second on the requests of a cluster: P99 at 40 % of saturation, in
// segments with and without scrapes that alternate, also between the libraries.

const { fork } = require('node:child_process');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { checkBody, expectedTotals } = require('./body-check.js');
const { OURS } = require('../shared/clients.js');
const { scrapeOverHttp } = require('./scraper.js');
const { Tree } = require('./tree.js');

const SHARE_OF_SATURATION = 0.4;
const CONNECTIONS_TO_SATURATE = 64;
const SECONDS_TO_SATURATE = 3;
const SCRAPE_EVERY = 1000;

/**
 * @typedef {object} LatencyScenario
 * @property {string[]} clients
 * @property {number} samples
 * @property {number} workers
 * @property {'integers' | 'floats'} kind
 * @property {number} segments pairs of an unscraped and a scraped segment; half as many for the other clients
 * @property {number} seconds of each
 * @property {number} timeLimit milliseconds; no further pair begins after that
 */

/**
 * @typedef {object} LatencyLane
 * @property {string} client
 * @property {import('./load.js').LoadResult[]} unscraped
 * @property {import('./load.js').LoadResult[]} scraped
 * @property {number} scrapes that were answered
 * @property {string[]} failures
 */

/**
 * @param {LatencyScenario} scenario
 * @param {{onRepetition: (done: number, of: number) => void}} surroundings
 * @returns {Promise<{rate: number, saturation: number, lanes: LatencyLane[]}>} requests a second
 */
async function runLatencyScenario(scenario, { onRepetition }) {
  const { samples, workers, kind, seconds, segments, timeLimit } = scenario;
  const trees = [];
  const generator = new LoadGenerator();
  try {
    for (const client of scenario.clients) {
      trees.push(await Tree.start({ client, samples, workers, kind, serve: true }));
    }
    const lanes = await Promise.all(trees.map(latencyLane));
    const saturation = await findSaturation(generator, lanes);
    const rate = Math.round(saturation * SHARE_OF_SATURATION);
    const until = performance.now() + timeLimit;
    for (let segment = 0; segment < segments && performance.now() < until; segment++) {
      onRepetition(segment, segments);
      for (const lane of lanesOfSegment(lanes, segment))
        await measurePair(generator, lane, { rate, seconds });
    }
    onRepetition(segments, segments);
    return { rate, saturation, lanes: lanes.map(({ result }) => result) };
  } finally {
    generator.stop();
    await Promise.all(trees.map(tree => tree.stop()));
  }
}

async function latencyLane(tree) {
  const expected = expectedTotals(await tree.change());
  return {
    tree,
    expected,
    result: { client: tree.settings.client, unscraped: [], scraped: [], scrapes: 0, failures: [] },
  };
}

/** Lanes in turn. The effect of the other clients shows in half as many segments. */
function lanesOfSegment(lanes, segment) {
  const turned = lanes.map((_, turn) => lanes[(segment + turn) % lanes.length]);
  return segment % 2 === 0 ? turned : turned.filter(({ tree }) => tree.settings.client === OURS);
}

/**
 * One rate for all: it follows the library that saturates first. The first load is a warm-up and not counted.
 */
async function findSaturation(generator, lanes) {
  const rates = [];
  for (const { tree } of lanes) {
    const load = {
      port: tree.servicePort,
      connections: CONNECTIONS_TO_SATURATE,
      seconds: SECONDS_TO_SATURATE,
    };
    await generator.run({ ...load, seconds: 1 });
    const { perSecond } = await generator.run(load);
    rates.push(perSecond);
  }
  return Math.min(...rates);
}

async function measurePair(generator, lane, { rate, seconds }) {
  const load = { port: lane.tree.servicePort, rate, seconds };
  lane.result.unscraped.push(await generator.run(load));
  const scraping = new AbortController();
  const scraper = scrapeEverySecond(lane, scraping.signal);
  lane.result.scraped.push(await generator.run(load));
  scraping.abort();
  await scraper;
}

/** A scrape that takes longer than a second delays the next one, as Prometheus does. */
async function scrapeEverySecond({ tree, expected, result }, signal) {
  const bodies = [];
  while (!signal.aborted) {
    const began = performance.now();
    try {
      const { text } = await scrapeOverHttp(tree.metricsPort, { gzip: false });
      bodies.push(text);
    } catch (error) {
      result.failures.push(error.message);
    }
    const left = SCRAPE_EVERY - (performance.now() - began);
    await sleep(Math.max(left, 0), undefined, { signal }).catch(() => {}); // the segment is over
  }
  result.scrapes += bodies.length;
  for (const text of bodies) {
    const problems = checkBody(text(), expected, tree.settings.kind);
    if (problems.length > 0) result.failures.push(`wrong body: ${problems.slice(0, 3).join('; ')}`);
  }
}

class LoadGenerator {
  #process = fork(path.join(__dirname, 'load.js'));
  #lastId = 0;

  /**
   * @param {import('./load.js').Load} load
   * @returns {Promise<import('./load.js').LoadResult>}
   */
  run(load) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error('the load generator has gone'));
      this.#process.once('exit', gone);
      this.#process.on('message', function take(message) {
        if (message.id !== id) return;
        this.off('message', take);
        this.off('exit', gone);
        resolve(message.result);
      });
      this.#process.send({ id, load });
    });
  }

  stop() {
    this.#process.disconnect();
  }
}

module.exports = { runLatencyScenario };
