'use strict';

// Measures rounds: the process trees of all clients run at the same time, and one of them at a time is under
// load.

const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { expectedTotals } = require('../cluster/body-check.js');
const { scrapeOverHttp } = require('../cluster/scraper.js');
const { Tree } = require('../cluster/tree.js');
const { MeasuringProcess } = require('./measuring-process.js');
const { OtherPrograms } = require('./other-programs.js');
const { runsOf } = require('./plan.js');
const { BARE, offersGzip } = require('./runs.js');
const { segmentOf } = require('./segment.js');

const SHARE_OF_SATURATION = 0.4;
const SATURATION = { passes: 3, seconds: 1.5, ofSegment: 0.3 };
const WARM_UP = { every: 0.5, first: 12, later: 4, segments: 2 };
// if other programs use more CPUs, the segment is measured again, and the quietest attempt counts
const DISTURBANCE = { processors: 0.2, attempts: 3 };
const QUIET = { most: 500, perSecond: 100 }; // ms of rest before each segment
const KIND = 'integers'; // can be checked to the last digit
const NO_SCRAPES = { milliseconds: [], failures: [] };
// garbage collections of the generator would count as latency of the cluster: with this new space there is
// one every few seconds
const GENERATOR_FLAGS = ['--min-semi-space-size=128', '--max-semi-space-size=128'];
const SERVICE = path.join(__dirname, 'service-primary.js');

/**
 * @typedef {object} MeasuredRound
 * @property {import('./plan.js').Round} round
 * @property {string} date
 * @property {number} rate requests a second
 * @property {Record<string, number>} saturation requests a second, by client
 * @property {number} expositionBytes of one worker; 0 without a metrics library
 * @property {import('./segment.js').Segment[]} segments in the order in which they were measured
 * @property {Record<string, string[]>} wrongTotals by client: what was wrong in the scrape after all segments
 */

/**
 * @param {import('./plan.js').Round[]} rounds
 * @param {{onStep: () => void}} surroundings called before each of the plan's steps
 * @returns {AsyncGenerator<MeasuredRound>}
 */
async function* measureRounds(rounds, { onStep }) {
  const stage = new Stage();
  try {
    for (const round of rounds) {
      onStep();
      await stage.prepareFor(round);
      yield await measureRound(stage, round, onStep);
    }
  } finally {
    await stage.clear();
  }
}

/** The processes: load generator and scraper for all rounds, and trees for all rounds of one size. */
class Stage {
  generator = new MeasuringProcess(path.join(__dirname, 'load.js'), GENERATOR_FLAGS);
  scraper = new MeasuringProcess(path.join(__dirname, 'scrape-process.js'));
  /** @type {{tree: Tree, expected: object, isWarm: boolean}[]} */
  lanes = [];
  #settings = '';

  /** @returns {number[]} process groups */
  get groups() {
    return [this.generator, this.scraper, ...this.lanes.map(({ tree }) => tree)].map(({ pid }) => pid);
  }

  async prepareFor({ samples, workers, clients }) {
    const settings = JSON.stringify({ samples, workers, clients });
    if (settings === this.#settings) return;
    await this.#stopTrees();
    this.#settings = settings;
    for (const client of clients) {
      const tree = await Tree.start({ client, samples, workers, kind: KIND }, SERVICE);
      this.lanes.push({ tree, expected: await expectedOf(tree), isWarm: false });
    }
    await this.#giveStaticPage();
  }

  /** The tree without a library answers with the page that the last library has written by now. */
  async #giveStaticPage() {
    const bare = this.lanes.find(({ tree }) => tree.settings.client === BARE);
    const library = this.lanes.findLast(({ tree }) => tree.settings.client !== BARE);
    if (!bare || !library) return;
    const { text } = await scrapeOverHttp(library.tree.metricsPort, { gzip: false });
    await bare.tree.call('page', { text: text() });
    bare.expected = library.expected;
  }

  async #stopTrees() {
    const trees = this.lanes.map(({ tree }) => tree);
    this.lanes = [];
    await Promise.all(trees.map(tree => tree.stop()));
  }

  async clear() {
    this.generator.stop();
    this.scraper.stop();
    await this.#stopTrees();
  }
}

async function expectedOf(tree) {
  return tree.settings.client === BARE ? {} : expectedTotals(await tree.call('totals'));
}

async function measureRound(stage, round, onStep) {
  const date = new Date().toISOString();
  const saturation = await findSaturation(stage, round);
  const rate = Math.max(1, Math.round(slowestOf(saturation) * SHARE_OF_SATURATION));
  for (const lane of stage.lanes) await warmUp(stage, lane, round, rate);
  const segments = [];
  for (let repetition = 0; repetition < round.repetitions; repetition++) {
    for (const run of runsOf(round, repetition)) {
      onStep();
      segments.push(
        await measureSegment(stage, { repetition, run }, { ...round, rate, scraped: run.scraped }),
      );
    }
  }
  const expositionBytes = await expositionOf(stage.lanes);
  return {
    round,
    date,
    rate,
    saturation,
    expositionBytes,
    segments,
    wrongTotals: await checkTotals(stage, round),
  };
}

/** Disturbance is measured without looking at latencies, so the choice does not favour short ones. */
async function measureSegment(stage, { repetition, run }, conditions) {
  const lane = stage.lanes.find(({ tree }) => tree.settings.client === run.client);
  const attempts = [];
  do {
    const { load, scraped, others } = await underLoad(stage, lane, conditions);
    attempts.push(segmentOf({ repetition, run: run.key }, load, scraped, others));
  } while (attempts.at(-1).others > DISTURBANCE.processors && attempts.length < DISTURBANCE.attempts);
  return attempts.reduce((quietest, attempt) => (attempt.others < quietest.others ? attempt : quietest));
}

/**
 * The rate follows the library that saturates first; the cluster without metrics sets it only if it is the
 * only client.
 */
function slowestOf(saturation) {
  const { [BARE]: bare, ...libraries } = saturation;
  return Math.min(...(Object.keys(libraries).length > 0 ? Object.values(libraries) : [bare]));
}

/** The highest throughput of each tree: other programs and cold code only lower it. */
async function findSaturation({ generator, lanes }, { reused, seconds }) {
  const length = Math.min(SATURATION.seconds, SATURATION.ofSegment * seconds);
  const saturation = {};
  for (let pass = 0; pass < SATURATION.passes; pass++) {
    for (const { tree } of lanes) {
      const { client } = tree.settings;
      const { perSecond } = await generator.call('load', { port: tree.servicePort, reused, seconds: length });
      saturation[client] = Math.max(perSecond, saturation[client] ?? 0);
    }
  }
  return saturation;
}

/**
 * Scrapes more often than the measurement, until code is compiled and heaps have grown: before that, P99 is
 * several times as large.
 */
async function warmUp(stage, lane, round, rate) {
  const seconds = Math.min(lane.isWarm ? WARM_UP.later : WARM_UP.first, WARM_UP.segments * round.seconds);
  lane.isWarm = true;
  await underLoad(stage, lane, { ...round, rate, seconds, every: WARM_UP.every, scraped: true });
}

async function underLoad(stage, { tree, expected }, { rate, seconds, reused, every, scraped, gzip }) {
  const { generator, scraper } = stage;
  await sleep(Math.min(QUIET.most, QUIET.perSecond * seconds));
  const scrapes = { port: tree.metricsPort, every, gzip: asksForGzip(tree, gzip), expected };
  const otherPrograms = new OtherPrograms(stage.groups);
  const load = await generator.call('load', { port: tree.servicePort, rate, seconds, reused }, () => {
    if (scraped) scraper.call('start', scrapes);
  });
  const others = otherPrograms.processors();
  return { load, others, scraped: scraped ? await scraper.call('stop', {}) : NO_SCRAPES };
}

/** A primary whose page is not compressed is asked for that, as the scraper refuses anything else. */
function asksForGzip({ settings: { client } }, gzip) {
  return gzip && offersGzip(client);
}

async function expositionOf(lanes) {
  const lane = lanes.find(({ tree }) => tree.settings.client !== BARE);
  return lane ? Math.max(...(await lane.tree.call('exposition'))) : 0;
}

/** When no request is pending any more, a scrape must show exactly what the workers have recorded. */
async function checkTotals({ scraper, lanes }, { gzip }) {
  const wrong = {};
  for (const { tree } of lanes) {
    const { client } = tree.settings;
    if (client === BARE) continue;
    const expected = await expectedOf(tree);
    const settings = { port: tree.metricsPort, gzip: asksForGzip(tree, gzip), expected, kind: KIND };
    const { problems } = await scraper
      .call('check', settings)
      .catch(error => ({ problems: [`no scrape: ${error.message}`] }));
    if (problems.length > 0) wrong[client] = problems.slice(0, 3);
  }
  return wrong;
}

module.exports = { measureRounds };
