'use strict';

// Scrapes of the cluster, in rounds: callers that come while a round collects share the next one, each with its own
// deadline. A round asks the workers, waits until all have answered or nobody waits for them any more, has the
// aggregator write the text, and hands it out. One that is held up by somebody does not hold up those who come later.

const { disarm, distinctFormats, keyOf } = require('./scrape-callers');
const { ThreadLostError } = require('./thread-backend');
const { pooledPage } = require('../../exposition/pooled-page');
const { timedSection } = require('../../event-loop/timed-section');

// How often a round asks a worker again whose answer could not be used, or renders again when the thread died.
const MAX_TRIES = 3;

// Node's timers go wrong beyond 2^31 ms; nobody waits that long for metrics.
const MAX_TIMEOUT_MILLISECONDS = 600_000;

// A round that takes longer waits for a worker that is slow or hangs, and perhaps for a caller with much patience. Others
// need not wait with it: the next round begins beside it.
const OVERLAP_MILLISECONDS = 250;

// How much longer than asked for a caller may wait for its text, once the workers have answered.
const RENDER_GRACE_MILLISECONDS = 2000;

/** @typedef {import('./scrape-callers').Caller} Caller */
/** @typedef {import('./scrape-callers').Bytes} Bytes */
/** @typedef {import('../aggregator/aggregator').Format} Format */
/** @typedef {import('../aggregator/aggregator').RenderResult} RenderResult */

/**
 * What rounds need to know of the cluster, and have it do.
 *
 * @typedef {object} Cluster
 * @property {() => Promise<unknown> | undefined} ready the aggregator's start; undefined where there is nothing to
 *   aggregate, and never was
 * @property {() => number} generation which aggregator it is: what one was told, the next does not know
 * @property {() => number[]} connected ids of those who can be asked now
 * @property {(workerIds: number[], timeout: number) => number[]} ask within milliseconds, unless they are asked already;
 *   returns who is to be waited for
 * @property {(workerIds: Iterable<number>) => void} giveUp on those who have not answered in time
 * @property {(formats: Format[], final: boolean, startedAt: number) => Promise<RenderResult>} render
 * @property {(memory: ArrayBuffer) => void} reuse for the next text
 * @property {() => boolean} isComplete whether the last render had numbers of all who have ever told any
 * @property {() => Error | undefined} failure why a cluster of which nothing is known is not just empty
 */

/**
 * @typedef {object} Round
 * @property {number} startedAt by performance.now()
 * @property {Set<Caller>} callers
 * @property {Set<number>} waiting ids of the workers that have not answered
 * @property {boolean} answered whether anybody has
 * @property {() => void} onProgress called when a worker has answered or is not waited for any more
 */

class ScrapeRounds {
  #cluster;
  /** @type {Set<Round>} under way, in the order of their start */
  #rounds = new Set();
  /** @type {Set<Caller>} who came while a round was collecting */
  #next = new Set();
  /** @type {NodeJS.Timeout | undefined} until the next round begins beside the others */
  #overlap = undefined;
  /** @type {Promise<unknown>} */
  #rendering = Promise.resolve();
  /** @type {(() => void)[]} who waits until no round is under way */
  #onIdle = [];

  /** @param {Cluster} cluster */
  constructor(cluster) {
    this.#cluster = cluster;
    /** @type {(seconds: number) => void} told how long each round has waited for answers */
    this.onCollected = () => {};
  }

  /** Whether a round is under way. */
  get isCollecting() {
    return this.#rounds.size > 0;
  }

  /**
   * The cluster's metrics as text.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds until the answer is given with what is known
   * @returns {Promise<Bytes | undefined>} undefined where there is nothing to aggregate, and never was
   * @throws {Error} where nobody answered in time and nothing is known
   */
  collect(format, timeout) {
    return new Promise((resolve, reject) => {
      /** @type {Caller} */
      const caller = {
        deadline: performance.now() + Math.min(timeout, MAX_TIMEOUT_MILLISECONDS),
        timer: undefined,
        format,
        resolve: bytes => {
          disarm(caller);
          resolve(bytes);
        },
        reject: error => {
          disarm(caller);
          reject(error);
        },
      };
      this.#next.add(caller);
      // From its own call on, also while it waits for somebody else's round to end.
      this.#arm(caller);
      this.#startSoon();
    });
  }

  /**
   * @param {number} workerId of whom nothing more is to be waited for
   * @param {boolean} answered
   */
  settle(workerId, answered) {
    for (const round of this.#rounds) {
      round.answered ||= answered;
      if (round.waiting.delete(workerId)) round.onProgress();
    }
  }

  /** Waits until all callers have been answered. */
  async drained() {
    while (this.#rounds.size > 0 || this.#next.size > 0) {
      await new Promise(resolve => this.#onIdle.push(() => resolve(undefined)));
    }
    await this.#rendering;
  }

  /** Rejects all that is under way. */
  close() {
    clearTimeout(this.#overlap);
    const callers = [this.#next, ...Array.from(this.#rounds, round => round.callers)];
    for (const caller of callers.flatMap(set => [...set])) {
      caller.reject(new Error('The AggregatorRegistry was closed.'));
    }
    for (const set of callers) set.clear();
    for (const round of this.#rounds) round.onProgress();
  }

  /** Callers of the same turn share a round. One that is collecting already has asked before they came. */
  #startSoon() {
    const youngest = [...this.#rounds].at(-1);
    if (youngest === undefined) {
      queueMicrotask(() => this.#startRound());
      return;
    }
    if (this.#overlap !== undefined) return;
    const left = youngest.startedAt + OVERLAP_MILLISECONDS - performance.now();
    this.#overlap = setTimeout(() => this.#startRound(), Math.max(left, 0));
  }

  async #startRound() {
    clearTimeout(this.#overlap);
    this.#overlap = undefined;
    if (this.#next.size === 0) return;
    /** @type {Round} */
    const round = {
      startedAt: performance.now(),
      callers: this.#next,
      waiting: new Set(),
      answered: false,
      onProgress: () => {},
    };
    this.#next = new Set();
    this.#rounds.add(round);
    try {
      await this.#run(round);
    } catch (error) {
      for (const caller of round.callers) caller.reject(/** @type {Error} */ (error));
    } finally {
      this.#rounds.delete(round);
      this.#onRoundEnded();
    }
  }

  #onRoundEnded() {
    if (this.#rounds.size > 0) return;
    if (this.#next.size > 0) this.#startRound();
    else for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** @param {Round} round */
  async #run(round) {
    const cluster = this.#cluster;
    if (cluster.ready() === undefined) {
      for (const caller of round.callers) caller.resolve(undefined);
      return;
    }
    let ask = cluster.connected();
    for (let tries = 1; ; tries++) {
      await cluster.ready();
      const generation = cluster.generation();
      timedSection('primary:ask', () => this.#ask(round, ask));
      await this.#wait(round);
      if (round.callers.size === 0) return;
      if (generation !== cluster.generation() && tries < MAX_TRIES) {
        // The aggregator that some have answered to is gone; another is there already, and knows nothing of them.
        ask = cluster.connected();
        continue;
      }
      // These, and not those who are left afterwards: there is one text for each of their formats.
      const callers = [...round.callers];
      const result = await this.#render(callers, tries >= MAX_TRIES, round.startedAt).catch(error => {
        if (!(error instanceof ThreadLostError)) throw error;
        if (tries >= MAX_TRIES) throw new Error('Operation timed out.');
        return undefined;
      });
      if (result === undefined || generation !== cluster.generation()) ask = cluster.connected();
      else if (result.again.length > 0 && result.bodies === undefined) ask = result.again;
      else {
        this.#deliver(callers, result, round.answered);
        return;
      }
      if (tries > MAX_TRIES) throw new Error('Operation timed out.');
    }
  }

  /**
   * @param {Round} round
   * @param {number[]} workerIds
   */
  #ask(round, workerIds) {
    if (round.callers.size === 0) return;
    const deadline = Math.max(...Array.from(round.callers, caller => caller.deadline));
    const timeout = Math.max(Math.round(deadline - performance.now()), 1);
    for (const workerId of this.#cluster.ask(workerIds, timeout)) round.waiting.add(workerId);
  }

  /**
   * Waits until everybody has answered, or no caller waits any more.
   *
   * @param {Round} round
   * @returns {Promise<void>}
   */
  async #wait(round) {
    for (const caller of round.callers) this.#arm(caller);
    await new Promise(resolve => {
      round.onProgress = () => {
        if (round.waiting.size === 0 || round.callers.size === 0) resolve(undefined);
      };
      round.onProgress();
    });
    round.onProgress = () => {};
    for (const caller of round.callers) this.#boundRendering(caller);
    this.onCollected((performance.now() - round.startedAt) / 1000);
    this.#cluster.giveUp(round.waiting);
    round.waiting.clear();
  }

  /** @param {Caller} caller */
  #arm(caller) {
    disarm(caller);
    const left = Math.max(Math.ceil(caller.deadline - performance.now()), 1);
    caller.timer = setTimeout(() => this.#expire(caller), left);
  }

  /**
   * What is left to do for a caller takes milliseconds, unless the aggregator hangs.
   *
   * @param {Caller} caller
   */
  #boundRendering(caller) {
    disarm(caller);
    const left = Math.max(caller.deadline - performance.now(), 0) + RENDER_GRACE_MILLISECONDS;
    caller.timer = setTimeout(() => {
      for (const { callers } of this.#rounds) callers.delete(caller);
      caller.reject(new Error('Operation timed out.'));
    }, left);
  }

  /**
   * Serves a caller whose time is up with what is known.
   *
   * @param {Caller} caller
   */
  async #expire(caller) {
    const round = [...this.#rounds].find(({ callers }) => callers.has(caller));
    this.#next.delete(caller);
    round?.callers.delete(caller);
    this.#boundRendering(caller);
    try {
      // The aggregator may be about to start again.
      await this.#cluster.ready();
      const result = await this.#render([caller], true, round?.startedAt ?? performance.now());
      // Less than was known before would look like a reset of all counters.
      if (!this.#cluster.isComplete())
        throw new ThreadLostError('workers have to tell the new aggregator first');
      this.#deliver([caller], result, round?.answered ?? false);
    } catch (error) {
      const lost = error instanceof ThreadLostError;
      caller.reject(lost ? new Error('Operation timed out.') : /** @type {Error} */ (error));
    }
    // Only now: whoever is served last does not wait for the round to render for nobody.
    round?.onProgress();
  }

  /**
   * @param {Caller[]} callers
   * @param {boolean} final
   * @param {number} startedAt when their round began
   * @returns {Promise<RenderResult>}
   */
  #render(callers, final, startedAt) {
    // One after the other: a family that a program's own function aggregates takes two steps.
    const result = this.#rendering.then(() =>
      this.#cluster.render(distinctFormats(callers), final, startedAt),
    );
    this.#rendering = result.catch(() => {});
    return result;
  }

  /**
   * @param {Caller[]} callers
   * @param {RenderResult} result
   * @param {boolean} answered
   */
  #deliver(callers, { bodies, isEmpty }, answered) {
    if (isEmpty && !answered) {
      const failure = this.#cluster.failure();
      if (failure !== undefined) throw failure;
      for (const caller of callers) caller.resolve(undefined);
      return;
    }
    const keys = distinctFormats(callers).map(keyOf);
    const holders = keys.map(key => callers.filter(({ format }) => keyOf(format) === key));
    (bodies ?? []).forEach((body, i) => {
      // A page that several callers share is not pooled: no caller knows when the others have read it.
      const onReleased = holders[i].length === 1 ? this.#cluster.reuse : undefined;
      for (const caller of holders[i]) caller.resolve(pooledPage(body, onReleased));
    });
  }
}

module.exports = { ScrapeRounds };
