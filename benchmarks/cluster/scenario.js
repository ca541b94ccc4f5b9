'use strict';

// One scenario: a new tree of processes for each library and each way to produce its body, all with the same
// samples. (A service uses one way, and memory of the others would be included.) Repetitions alternate
// between the trees.

const fs = require('node:fs');
const path = require('node:path');
const { clientNamed, OURS } = require('../shared/clients.js');
const { checkBody, expectedTotals } = require('./body-check.js');
const { PushReceiver } = require('./push-receiver.js');
const { scrapeOverHttp } = require('./scraper.js');
const { Tree } = require('./tree.js');

/**
 * @typedef {object} Scenario
 * @property {string[]} clients
 * @property {string[]} [paths] only these ways of this library; default all (the other clients have one)
 * @property {number} samples of each worker
 * @property {number} workers
 * @property {'integers' | 'floats'} kind
 * @property {number} warmUps scrapes before anything is measured
 * @property {number} runs measured repetitions
 * @property {number} timeLimit milliseconds after the warm-up; no further repetition begins after that
 * @property {boolean} [gaps] false: the event loops' gaps are left out, which halves the scrapes
 */

/**
 * The figures of one repetition of one lane; CPU figures are those of a scraped window minus an equally long
 * unscraped one.
 *
 * @typedef {object} Run
 * @property {number} wall milliseconds from the call (string, bytes) or the request (http, gzip) to the whole
 *   body
 * @property {number} bodyBytes
 * @property {number} primaryMain CPU of the primary's main thread, ms
 * @property {number} primaryProcess CPU of the whole primary, ms
 * @property {number} workerMain CPU of a worker's main thread, mean of the workers, ms
 * @property {number} workerProcess CPU of a whole worker, mean of the workers, ms
 * @property {number} allProcesses CPU of the whole tree, ms
 * @property {number | null} ipcToWorkers bytes, all workers; null: a group, which has no IPC; also the next
 *   two
 * @property {number | null} ipcFromWorkers bytes, all workers
 * @property {number | null} ipcPerWorker bytes both ways, the worker with the most
 * @property {number | null} descriptors that the primary has open; null: a group
 * @property {number | null} files in the directory of snapshots; null: the library has none, or a group
 * @property {number} peakPrimary MiB
 * @property {number} peakWorker MiB, the worker with the most
 * @property {(number | null)[]} primarySections the longest section of each scraped window, ms; null: none
 *   was reported
 * @property {(number | null)[]} workerSections the same of each worker
 * @property {Record<string, number>} sectionsByName longest of each section's name, `primary:` or `worker:`
 *   before it, ms
 * @property {number | null} primaryGap longest gap of the event loop in a scraped window, ms; null: left out,
 *   as the next three
 * @property {number | null} primaryIdleGap the same in an equally long unscraped window
 * @property {number | null} workerGap longest of all workers
 * @property {number | null} workerIdleGap
 */

/**
 * @typedef {object} Lane a library and a way to its body
 * @property {string} client
 * @property {string} path
 * @property {Run[]} runs
 * @property {number} bodies how many were checked
 * @property {string[]} failures failed scrapes and wrong pages
 */

/**
 * @param {Scenario} scenario
 * @param {{directory: string, onRepetition: (done: number, of: number) => void}} surroundings a directory for
 *   bodies
 * @returns {Promise<Lane[]>}
 */
async function runScenario(scenario, { directory, onRepetition }) {
  const trees = [];
  const receiver = await PushReceiver.start();
  try {
    const lanes = [];
    const { samples, workers, kind } = scenario;
    const bodyFile = path.join(directory, 'body.txt');
    for (const client of scenario.clients) {
      for (const each of pathsOf(client, scenario)) {
        const group = each === 'group';
        const workersServeMetrics = group || each === 'worker';
        const tree = await Tree.start({ client, samples, workers, kind, group, workersServeMetrics });
        trees.push(tree);
        lanes.push(new LaneRunner(tree, each, bodyFile, receiver));
      }
    }
    await repeat(lanes, scenario, onRepetition);
    return lanes.map(lane => lane.result);
  } finally {
    await Promise.all(trees.map(tree => tree.stop()));
    receiver.stop();
  }
}

function pathsOf(client, { paths }) {
  const all = clientNamed(client).paths;
  return client === OURS && paths ? all.filter(each => paths.includes(each)) : all;
}

/** Warm-ups, then repetitions; each begins with another lane. */
async function repeat(lanes, { warmUps, runs, timeLimit, gaps = true }, onRepetition) {
  for (let warmUp = 0; warmUp < warmUps; warmUp++) {
    for (const lane of lanes) await lane.warmUp(warmUp);
  }
  const until = performance.now() + timeLimit;
  for (let run = 0; run < runs && performance.now() < until; run++) {
    onRepetition(run, runs);
    for (let turn = 0; turn < lanes.length; turn++) {
      await lanes[(run + turn) % lanes.length].measure(run, { gaps });
    }
  }
  onRepetition(runs, runs);
}

class LaneRunner {
  #tree;
  #path;
  #bodyFile;
  #receiver;
  #lastWall = 100;
  #scrapes = 0;
  #when = '';

  constructor(tree, lanePath, bodyFile, receiver) {
    this.#tree = tree;
    this.#path = lanePath;
    this.#bodyFile = bodyFile;
    this.#receiver = receiver;
    this.result = { client: tree.settings.client, path: lanePath, runs: [], bodies: 0, failures: [] };
  }

  /** @param {number} warmUp its number */
  async warmUp(warmUp) {
    // Each process that serves pages has to warm up.
    for (let i = 0; i < Math.max(this.#tree.workerPorts.length, 1); i++)
      await this.#guarded(`warm-up ${warmUp + 1}`, () => this.#scrapedWindow({ gaps: false }));
  }

  /**
   * @param {number} run its number; odd runs take the unscraped window first
   * @param {{gaps: boolean}} options whether to find the gaps of the event loops too, in windows of their own
   */
  async measure(run, options) {
    await this.#guarded(`run ${run + 1}`, async () => {
      const cpu = await this.#pair({ gaps: false, idleFirst: run % 2 === 1 });
      const gaps = options.gaps ? await this.#pair({ gaps: true, idleFirst: run % 2 === 1 }) : null;
      this.result.runs.push(runOf(cpu, gaps));
    });
  }

  async #guarded(when, action) {
    this.#when = when;
    try {
      await action();
    } catch (error) {
      this.result.failures.push(`${when}: ${error.message}`);
    }
  }

  async #pair({ gaps, idleFirst }) {
    const before = idleFirst ? await this.#idleWindow({ gaps }) : null;
    const scraped = await this.#scrapedWindow({ gaps });
    return { scraped, idle: before ?? (await this.#idleWindow({ gaps })) };
  }

  async #idleWindow({ gaps }) {
    await this.#tree.call('begin', { gaps });
    await this.#tree.call('pause', { milliseconds: this.#lastWall });
    return this.#tree.call('end');
  }

  async #scrapedWindow({ gaps }) {
    const totals = await this.#tree.change();
    await this.#tree.call('begin', { gaps });
    const scrape = await this.#scrape();
    const readings = await this.#tree.call('end');
    this.#lastWall = scrape.milliseconds;
    const body = await this.#bodyOf(scrape);
    this.#check(body, totals);
    return { ...readings, wall: scrape.milliseconds, bodyBytes: scrape.bytes ?? body.length };
  }

  #scrape() {
    if (this.#path === 'string') return this.#tree.call('scrape');
    if (this.#path === 'bytes') return this.#tree.call('scrapeBytes');
    if (this.#path === 'push') return this.#push();
    if (this.#tree.settings.workersServeMetrics) return this.#scrapeNextWorker();
    return scrapeOverHttp(this.#tree.metricsPort, { gzip: this.#path === 'gzip' });
  }

  async #push() {
    const { milliseconds } = await this.#tree.call('push', { url: this.#receiver.url });
    const { bytes, text } = this.#receiver.take();
    return { milliseconds, bytes, text };
  }

  /** The primary gets a command meanwhile, as with the other ways to which its CPU time is compared. */
  async #scrapeNextWorker() {
    const { workerPorts } = this.#tree;
    const port = workerPorts[this.#scrapes++ % workerPorts.length];
    const command = this.#tree.call('pause', { milliseconds: 0 });
    const scrape = await scrapeOverHttp(port, { gzip: false });
    await command;
    return scrape;
  }

  /** Reads a page that was not sent over HTTP from a file, after the window has ended. */
  async #bodyOf(scrape) {
    if (scrape.text) return scrape.text();
    await this.#tree.call('saveBody', { file: this.#bodyFile });
    return fs.readFileSync(this.#bodyFile, 'utf8');
  }

  #check(body, totals) {
    const problems = checkBody(body, expectedTotals(totals), this.#tree.settings.kind);
    this.result.bodies += 1;
    if (problems.length > 0)
      this.result.failures.push(
        `${this.#when}: wrong body of ${body.length}: ${problems.slice(0, 3).join('; ')}`,
      );
  }
}

/**
 * @param {{scraped: object, idle: object}} cpu
 * @param {{scraped: object, idle: object} | null} gaps
 * @returns {Run}
 */
function runOf(cpu, gaps) {
  const { scraped, idle } = cpu;
  const both = scraped.written.map((written, worker) => written + scraped.workers[worker].written);
  const windows = gaps ? [scraped, gaps.scraped] : [scraped];
  return {
    wall: scraped.wall,
    bodyBytes: scraped.bodyBytes,
    primaryMain: scraped.primary.mainThreadCpu - idle.primary.mainThreadCpu,
    primaryProcess: scraped.primary.processCpu - idle.primary.processCpu,
    workerMain: mean(scraped.workers, 'mainThreadCpu') - mean(idle.workers, 'mainThreadCpu'),
    workerProcess: mean(scraped.workers, 'processCpu') - mean(idle.workers, 'processCpu'),
    allProcesses: processCpuOfTree(scraped) - processCpuOfTree(idle),
    ipcToWorkers: both.length > 0 ? sum(scraped.written) : null,
    ipcFromWorkers: both.length > 0 ? sum(scraped.workers.map(({ written }) => written)) : null,
    ipcPerWorker: both.length > 0 ? Math.max(...both) : null,
    descriptors: scraped.descriptors ?? null,
    files: scraped.files ?? null,
    peakPrimary: scraped.primary.peakMemory,
    peakWorker: Math.max(...scraped.workers.map(({ peakMemory }) => peakMemory)),
    primarySections: windows.map(({ primary }) => longestSection(primary)),
    workerSections: windows.flatMap(({ workers }) => workers.map(longestSection)),
    sectionsByName: sectionsByName(windows),
    primaryGap: gaps && gaps.scraped.primary.longestGap,
    primaryIdleGap: gaps && gaps.idle.primary.longestGap,
    workerGap: gaps && longestGapOfWorkers(gaps.scraped),
    workerIdleGap: gaps && longestGapOfWorkers(gaps.idle),
  };
}

function longestGapOfWorkers({ workers }) {
  return Math.max(...workers.map(({ longestGap }) => longestGap));
}

function longestSection({ sections }) {
  const durations = Object.values(sections).map(({ longest }) => longest);
  return durations.length > 0 ? Math.max(...durations) : null;
}

function sectionsByName(windows) {
  const longest = {};
  const take = (side, { sections }) => {
    for (const [name, section] of Object.entries(sections)) {
      longest[`${side}: ${name}`] = Math.max(longest[`${side}: ${name}`] ?? 0, section.longest);
    }
  };
  for (const { primary, workers } of windows) {
    take('primary', primary);
    for (const worker of workers) take('worker', worker);
  }
  return longest;
}

function processCpuOfTree({ primary, workers }) {
  return primary.processCpu + sum(workers.map(({ processCpu }) => processCpu));
}

function mean(readings, key) {
  return sum(readings.map(reading => reading[key])) / readings.length;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

module.exports = { runScenario };
