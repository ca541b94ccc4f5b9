'use strict';

// Runs on the primary's loop. Scrapes of the cluster, in rounds. A round asks the workers, waits until all
// have answered or no caller waits any more, has the aggregator write the page, and answers its callers.
// Callers that arrive while a round collects share the next one; each keeps its own deadline. A slow round
// does not delay later callers.

const { ScrapeCaller, distinctFormats } = require('../wire/scrape-callers');
const { COLLECT } = require('../../source/failure-counts');
const { ScrapeRound } = require('./scrape-round');
const { TOO_MANY_SELECTIONS, hasTooManySelections } = require('../../exposition/page-format');
const { unavailable, timedOut } = require('../../registry/unavailable');
const { withFacts } = require('../../exposition/page-bytes');
const { Batches } = require('../../event-loop/batches');
const { runInSlices } = require('../../event-loop/slices');
const { timedSection } = require('../../event-loop/timed-section');
const { unref } = require('../../event-loop/timers');

// How often a round asks a worker again if its answer could not be used, or renders again if the thread died.
const MAX_TRIES = 3;

// A round that takes longer is waiting for a slow worker. The next round then starts before it has ended.
const OVERLAP_MILLISECONDS = 250;

// Sending a request takes 0.03 to 0.05 ms, so many workers are asked in several turns of the loop.
const ASK_MILLISECONDS = 0.5;

// How long after its deadline a caller may still wait for the page to be written. A push takes several times
// as long as a page.
const RENDER_GRACE_MILLISECONDS = 2000;
const PUSH_GRACE_MILLISECONDS = 20_000;

/** @typedef {import('../wire/scrape-callers').Bytes} Bytes */
/** @typedef {import('../wire/scrape-callers').PageFile} PageFile */
/** @typedef {import('../wire/scrape-callers').BuiltPush} BuiltPush */
/** @typedef {import('../../aggregator/aggregator').Format} Format */
/** @typedef {import('../../aggregator/aggregator').RenderResult} RenderResult */
/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */

/**
 * `isIncomplete`: whether the page lacks numbers that an earlier one had.
 *
 * @typedef {RenderResult & {isIncomplete?: boolean}} Rendered
 */

/**
 * The cluster as rounds use it.
 *
 * @typedef {object} Cluster
 * @property {() => Promise<unknown> | undefined} ready settles when the aggregator runs; undefined if there
 *   is nothing to aggregate, and never was
 * @property {() => number} losses of aggregators so far; the next one has none of the answers that a lost one
 *   has received
 * @property {() => WorkerRecord[]} connected the workers that can be asked now
 * @property {(worker: WorkerRecord, timeout: number) => number} ask asks a worker, unless that was done
 *   already, with a timeout in milliseconds; returns the milliseconds to wait for it, 0 for not at all
 * @property {(workers: Iterable<WorkerRecord>, waited: number) => void} giveUp called in each round with the
 *   workers that have not answered, and how many milliseconds it has waited
 * @property {(formats: Format[], final: boolean, startedAt: number) => Promise<Rendered>} render
 * @property {(file: string) => void} discard the file of a page that nobody waits for
 * @property {() => Error | undefined} failure why there are no numbers although there are workers
 */

class ScrapeRounds {
  #cluster;
  /** @type {Set<ScrapeRound>} under way, in order of their start */
  #rounds = new Set();
  /** @type {Batches<ScrapeCaller>} that share rounds */
  #callers = new Batches(callers => this.#runRound(callers), OVERLAP_MILLISECONDS);
  /** @type {Promise<unknown>} */
  #rendering = Promise.resolve();
  /** Name of the class that was closed. */
  #closed = /** @type {string | undefined} */ (undefined);

  /** @param {Cluster} cluster */
  constructor(cluster) {
    this.#cluster = cluster;
  }

  /**
   * The cluster's metrics as text.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing workers are used
   * @returns {Promise<Bytes | PageFile | BuiltPush | undefined>} undefined if there is nothing to aggregate,
   *   and never was
   * @throws {Error} if no worker answered in time and there are no earlier numbers, or after close()
   */
  collect(format, timeout) {
    // A worker's request may have waited for its turn.
    if (this.#closed !== undefined) return Promise.reject(closed(this.#closed));
    const caller = new ScrapeCaller(format, timeout);
    const formats = Array.from(this.#callers.waiting, other => other.format);
    if (hasTooManySelections(formats, format)) return Promise.reject(unavailable(TOO_MANY_SELECTIONS));
    this.#callers.add(caller);
    // The deadline counts from the caller's own call, even while the caller waits for an earlier round to
    // end.
    caller.afterDeadline(0, () => {
      caller.isLate = true;
      this.#noteProgress();
    });
    // Writing the page takes milliseconds, unless the aggregator hangs.
    const grace = format.push === undefined ? RENDER_GRACE_MILLISECONDS : PUSH_GRACE_MILLISECONDS;
    caller.afterDeadline(grace, () => {
      for (const callers of this.#waiting) callers.delete(caller);
      caller.reject(timedOut());
      this.#noteProgress();
    });
    return caller.promise;
  }

  /**
   * @param {WorkerRecord} worker that has answered, or cannot answer any more
   * @param {boolean} answered
   * @param {number} [hooksBegan] by performance.now(): rounds that started later ask again, because what the
   *   `collect` hooks have set may be older than their callers
   */
  settle(worker, answered, hooksBegan = Infinity) {
    for (const round of this.#rounds) {
      round.isAnswered ||= answered;
      const askedAt = round.waiting.get(worker);
      if (askedAt === undefined) continue;
      if (askedAt > hooksBegan && round.hasTime) this.#askOne(round, worker);
      else round.stopWaiting(worker);
    }
  }

  /** Waits until all callers are answered. */
  async drained() {
    for (let callers = this.#unanswered; callers.length > 0; callers = this.#unanswered)
      await Promise.allSettled(callers.map(({ promise }) => promise));
    await this.#rendering;
  }

  /**
   * Rejects all callers, now and from now on.
   *
   * @param {string} registry the class that the program has closed
   */
  close(registry) {
    this.#closed = registry;
    for (const caller of this.#unanswered) caller.reject(closed(registry));
    for (const callers of this.#waiting) callers.clear();
    this.#noteProgress();
  }

  #noteProgress() {
    for (const round of this.#rounds) round.noteProgress();
  }

  /** The callers that are not answered: of the next round, and of each that is under way. */
  get #waiting() {
    return [this.#callers.waiting, ...Array.from(this.#rounds, ({ callers }) => callers)];
  }

  get #unanswered() {
    return this.#waiting.flatMap(callers => [...callers]);
  }

  /** @param {ScrapeCaller[]} callers */
  async #runRound(callers) {
    const round = new ScrapeRound(new Set(callers));
    this.#rounds.add(round);
    try {
      await this.#run(round);
    } catch (error) {
      for (const caller of round.callers) caller.reject(/** @type {Error} */ (error));
    } finally {
      this.#rounds.delete(round);
    }
  }

  /** @param {ScrapeRound} round */
  async #run(round) {
    const cluster = this.#cluster;
    if (cluster.ready() === undefined) {
      for (const caller of round.callers) caller.resolve(undefined);
      return;
    }
    /** @type {number[] | undefined} ids of the workers to ask; all the first time, and after a loss */
    let again;
    for (let tries = 1; round.callers.size > 0; tries++) {
      await cluster.ready();
      const losses = cluster.losses();
      // Otherwise some workers have answered to an aggregator that is gone, and the next one lacks their
      // numbers.
      const isCurrent = () => losses === cluster.losses();
      const workers = cluster.connected().filter(({ worker }) => again?.includes(worker.id) ?? true);
      const asked = this.#ask(round, workers);
      await runInSlices(asked, ASK_MILLISECONDS, slice => timedSection('primary:ask', slice));
      again = await this.#answer(round, tries === MAX_TRIES, isCurrent);
    }
  }

  /**
   * Answers the callers of a round when no worker is waited for any more, and by themselves those whose time
   * is up, with the last known numbers of the workers that have not answered.
   *
   * @param {ScrapeRound} round
   * @param {boolean} isLast whether the workers cannot be asked again
   * @param {() => boolean} isCurrent whether the aggregator that they have answered to is not lost
   * @returns {Promise<number[] | undefined>} if callers are left: ids of the workers to ask again, undefined
   *   for all
   */
  async #answer(round, isLast, isCurrent) {
    for (let callers = await round.due(); callers.length > 0; callers = await round.due()) {
      const isLate = callers[0].isLate;
      // Read before rendering: answers that arrive meanwhile are not on the page.
      const { isAnswered } = round;
      if (!isLate) this.#giveUp(round);
      try {
        const rendering = isCurrent() ? this.#render(callers, isLate || isLast, round.startedAt) : undefined;
        const result = await rendering?.catch(error => {
          if (isCurrent()) throw error;
        });
        const isUsable = result && isCurrent() && (isLate || isLast || result.again.length === 0);
        // A page with fewer numbers than the last one would look like a reset of all counters.
        if (isUsable && !(isLate && result.isIncomplete)) this.#deliver(callers, result, isAnswered);
        else {
          if (result) this.#discard(callers);
          if (!isUsable && !isLast) return isCurrent() ? result?.again : undefined;
          throw timedOut();
        }
      } catch (error) {
        for (const caller of callers) caller.reject(/** @type {Error} */ (error));
      }
      for (const caller of callers) round.callers.delete(caller);
    }
    if (round.waiting.size > 0) this.#giveUp(round);
    return undefined;
  }

  /** @param {ScrapeRound} round that waits for no worker any more */
  #giveUp({ waiting, startedAt }) {
    this.#cluster.giveUp(waiting.keys(), performance.now() - startedAt);
    waiting.clear();
  }

  /**
   * @param {ScrapeRound} round
   * @param {WorkerRecord[]} workers
   * @returns {Generator<void, void>}
   */
  *#ask(round, workers) {
    for (const worker of workers) {
      if (!round.hasTime) return;
      this.#askOne(round, worker);
      yield;
    }
  }

  /**
   * @param {ScrapeRound} round
   * @param {WorkerRecord} worker
   */
  #askOne(round, worker) {
    const { timeout } = round;
    const askedAt = performance.now();
    const wait = this.#cluster.ask(worker, timeout);
    if (wait > 0) round.waiting.set(worker, askedAt);
    else round.stopWaiting(worker);
    // The callers' own timers keep the process alive.
    if (wait > 0 && wait < timeout) unref(setTimeout(() => round.stopWaiting(worker), wait));
  }

  /**
   * @param {ScrapeCaller[]} callers
   * @param {boolean} final
   * @param {number} startedAt when their round started
   * @returns {Promise<Rendered>}
   */
  #render(callers, final, startedAt) {
    // One after the other, because a page with the application's own aggregators takes two steps.
    const result = this.#rendering.then(() =>
      this.#cluster.render(distinctFormats(callers), final, startedAt),
    );
    // A lost thread may have left files.
    this.#rendering = result.catch(() => this.#discard(callers));
    return result;
  }

  /**
   * @param {ScrapeCaller[]} callers
   * @param {RenderResult} result
   * @param {boolean} answered
   */
  #deliver(callers, result, answered) {
    if (result.isEmpty && !answered) {
      this.#discard(callers);
      const failure = this.#cluster.failure();
      if (failure !== undefined) throw failure;
      for (const caller of callers) caller.resolve(undefined);
      return;
    }
    const keys = new Set(callers.map(({ key }) => key));
    const sharing = Array.from(keys, key => callers.filter(caller => caller.key === key));
    const facts = { hookFailures: hookFailures(result.state), hasNative: result.hasNative };
    (result.bodies ?? []).forEach((body, i) => {
      const page = withFacts('buffer' in body ? Buffer.from(body.buffer, 0, body.length) : body, facts);
      for (const caller of sharing[i]) {
        const isAwaited = caller.resolve(page);
        if (!isAwaited && 'file' in page) this.#cluster.discard(page.file);
      }
    });
  }

  /** @param {ScrapeCaller[]} callers who do not get the files that were written for them */
  #discard(callers) {
    for (const { format } of callers) if (format.file !== undefined) this.#cluster.discard(format.file);
  }
}

/**
 * @param {RenderResult['state']} state
 * @returns {import('../../exposition/page-bytes').HookFailures | undefined} undefined if there were none
 */
function hookFailures({ failures }) {
  const ofHooks = failures.filter(({ stage }) => stage === COLLECT);
  return ofHooks.length === 0 ? undefined : ofHooks.map(({ metric, count }) => [metric, count]);
}

/** @param {string} registry */
function closed(registry) {
  return unavailable(`The ${registry} was closed.`, undefined, 'NO_AGGREGATOR');
}

module.exports = { ScrapeRounds };
