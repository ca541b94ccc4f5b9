'use strict';

// Runs on the primary's loop. Keeps an aggregator running: starts it when it is first needed, replaces a lost
// thread, aggregates in place if threads do not last or start, and gives each new one the work that the lost
// one had not done.

const { startBackend } = require('./aggregator-backend');
const { isOutOfMemory } = require('./thread-backend');
const { Spool } = require('../../spool/spool');
const { unavailable } = require('../../registry/unavailable');
const { debug } = require('../../options/debug-log');
const { unref } = require('../../event-loop/timers');

// After three losses, each within this time of the one before, no other thread is started. A thread that
// hangs at its first request counts as lost after 30 seconds.
const MAX_LOSSES = 3;
const LOSS_WINDOW_MILLISECONDS = 40_000;

// Pauses before the next start, if a thread has run out of memory or nothing could be started. Each is twice
// as long as the one before, up to the longest, unless that is long ago.
const FIRST_PAUSE_MILLISECONDS = 1000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

/** @typedef {import('./aggregator-backend').InPlaceReason} InPlaceReason */

/**
 * Events of the supervisor.
 *
 * @typedef {object} SupervisorEvents
 * @property {() => void} onDirectory workers must be welcomed again: the directory of snapshot files has
 *   changed, or another aggregator reads it
 * @property {() => void} onStarted an aggregator runs; it has nothing of living workers and threads yet,
 *   except what is in the directory
 * @property {(workerIds: number[]) => void} [onRetired] these have become part of the retired totals
 */

class AggregatorSupervisor {
  #options;
  #events;
  /** @type {Promise<any> | undefined} settles when the aggregator runs; undefined if it was never needed */
  starting = undefined;
  /** @type {Awaited<ReturnType<typeof startBackend>> | undefined} */
  #backend = undefined;
  /** Directory of the spool; '' if there is none. */
  directory = '';
  /**
   * @type {Map<number, import('../../aggregator/retirement').Death>} dead workers that are not part of the
   *   retired totals yet
   */
  #retiring = new Map();
  /** How many workers have died. */
  dead = 0;
  /** @type {Uint8Array | undefined} totals of dead workers, if the thread could not write them to a file */
  #totals = undefined;
  /** @type {(() => void)[]} called when a dead worker has become part of the retired totals */
  #onRetired = [];
  /** Number of threads that were lost: workers must answer to the next one. */
  lostThreads = 0;
  /** Consecutive losses, each within that time of the one before. */
  #losses = 0;
  /** When the last thread was lost, by performance.now(). */
  #lostAt = -Infinity;
  /** Length of the last pause, milliseconds. */
  #pause = 0;
  /** Start of the last pause, by performance.now(). */
  #pausedAt = -Infinity;
  /** @type {'' | 'memory' | 'start'} why the next start is put off; '' if it is not */
  #pauseReason = '';
  /** @type {NodeJS.Timeout | undefined} */
  #restartTimer = undefined;
  #closed = false;
  #start;
  #onExit = () => {
    // Before the directory is removed, because the thread would create another one.
    this.#backend?.terminate();
    // That of a group is removed by the last process of the group.
    if (this.#options.groupFacts === undefined) this.#removeDirectory();
  };

  /**
   * @param {import('./aggregator-backend').BackendOptions} options
   * @param {SupervisorEvents} events
   * @param {typeof startBackend} [start]
   */
  constructor(options, events, start = startBackend) {
    this.#start = start;
    this.#options = options;
    this.#events = events;
  }

  /**
   * Where the aggregation runs, and why not in a thread; with `none`, why there is a pause: a thread ran out
   * of memory (`memory`), or nothing could be started (`start`).
   *
   * @returns {{aggregator: 'thread' | 'in place' | 'none', aggregatorReason: '' | 'memory' | InPlaceReason}}
   */
  get place() {
    if (this.#backend === undefined) return { aggregator: 'none', aggregatorReason: this.#pauseReason };
    const { inPlaceReason } = this.#backend;
    return { aggregator: inPlaceReason === '' ? 'thread' : 'in place', aggregatorReason: inPlaceReason };
  }

  /** The group whose members the workers are; undefined for a cluster. */
  get group() {
    return this.#options.groupFacts?.();
  }

  /** How many dead workers are not part of the retired totals yet. */
  get retiring() {
    return this.#retiring.size;
  }

  /**
   * Starts the aggregator, once.
   *
   * @returns {Promise<void>}
   */
  start() {
    this.starting ??= this.#handled(this.#startBackend());
    return this.starting;
  }

  /**
   * Marks a rejection as handled, because possibly nothing waits for the promise yet.
   *
   * @template T
   * @param {Promise<T>} starting
   */
  #handled(starting) {
    starting.catch(error => debug('the aggregator does not start: %s', error));
    return starting;
  }

  async #startBackend() {
    if (!process.listeners('exit').includes(this.#onExit)) process.on('exit', this.#onExit);
    const events = {
      onDirectory: (/** @type {string} */ directory) => this.#onDirectory(directory),
      onRetired: (/** @type {number[]} */ workerIds, /** @type {Uint8Array | undefined} */ totals) =>
        this.#noteRetired(workerIds, totals),
      onRestart: (/** @type {Error | undefined} */ error) => this.#replace(error),
    };
    const reason = this.#losses >= MAX_LOSSES ? 'start' : undefined;
    const adopt = this.directory || this.#options.adopt;
    const options = { ...this.#options, adopt, totals: this.#totals };
    try {
      this.#backend = await this.#start(options, events, reason);
    } catch (error) {
      // This may happen before `starting` is set.
      throw this.#restartLater(error);
    }
    this.#events.onStarted();
    for (const [workerId, death] of this.#retiring) this.#backend.send('retire', workerId, death);
    if (adopt !== undefined) this.#events.onDirectory();
    await this.#options.settled;
  }

  /**
   * The thread is lost: a new one continues with the retired totals.
   *
   * @param {Error | undefined} error with which it ended
   */
  #replace(error) {
    if (this.#closed) return;
    this.lostThreads++;
    this.#backend = undefined;
    if (isOutOfMemory(error)) {
      this.#restartLater(error);
      return;
    }
    const now = performance.now();
    this.#losses = now - this.#lostAt < LOSS_WINDOW_MILLISECONDS ? this.#losses + 1 : 1;
    this.#lostAt = now;
    this.#restart();
  }

  #restart() {
    this.#pauseReason = '';
    this.starting = this.#handled(this.#startBackend());
  }

  /**
   * Called after a thread has run out of memory: aggregating in place would make this process run out of
   * memory next, and end the application. Also called if nothing could be started, because the process has no
   * free descriptors, for example. Until the restart, scrapes are rejected.
   *
   * @param {any} error
   * @returns {Error} for scrapes
   */
  #restartLater(error) {
    if (this.#closed) return error;
    this.#pauseReason = isOutOfMemory(error) ? 'memory' : 'start';
    const pause = this.#nextPause();
    const [cause, detail] = isOutOfMemory(error)
      ? ['The aggregator thread ran out of memory', '']
      : ['The aggregator cannot be started', ` (${error?.message})`];
    const later = `. It is started again after ${pause / 1000} s.`;
    // Scrapers do not get the detail, because it may contain a path.
    const reason = unavailable(cause + detail + later, cause + later);
    this.starting = this.#handled(Promise.reject(reason));
    this.#restartTimer = unref(setTimeout(() => this.#restart(), pause));
    return reason;
  }

  /** @returns {number} milliseconds before the next start */
  #nextPause() {
    const now = performance.now();
    const isRepeated = now - this.#pausedAt < 2 * LONGEST_PAUSE_MILLISECONDS;
    this.#pausedAt = now;
    const longer = isRepeated ? this.#pause * 2 : FIRST_PAUSE_MILLISECONDS;
    this.#pause = Math.min(longer, LONGEST_PAUSE_MILLISECONDS);
    return this.#pause;
  }

  /** @param {string} directory */
  #onDirectory(directory) {
    if (directory === this.directory) return;
    this.directory = directory;
    this.#events.onDirectory();
  }

  /** @type {import('../../aggregator/retirement').OnSaved} */
  #noteRetired(workerIds, totals) {
    this.#totals = totals;
    for (const workerId of workerIds) this.#retiring.delete(workerId);
    for (const resolve of this.#onRetired.splice(0)) resolve();
    this.#events.onRetired?.(workerIds);
  }

  /**
   * Sends an operation without a result. If no aggregator runs, there is nothing to send: see `onStarted`.
   *
   * @param {'answer' | 'discard' | 'share'} op
   * @param {...unknown} args
   */
  send(op, ...args) {
    this.#backend?.send(op, ...args);
  }

  /**
   * Adds the numbers of a dead worker to the retired totals.
   *
   * @param {number} workerId
   * @param {import('../../aggregator/retirement').Death} death
   */
  retire(workerId, death) {
    if (!death.isReplaced) this.dead++;
    this.#retiring.set(workerId, death);
    this.#backend?.send('retire', workerId, death);
  }

  /** @returns {Promise<void>} resolves when all dead workers are part of the retired totals */
  async allRetired() {
    while (this.#retiring.size > 0)
      await new Promise(resolve => this.#onRetired.push(() => resolve(undefined)));
  }

  /**
   * @param {import('./aggregator-backend').Requested} op
   * @param {...unknown} args
   * @returns {Promise<any>} rejected if the aggregator is lost
   */
  async request(op, ...args) {
    return this.running.request(op, ...args);
  }

  /**
   * The aggregator that runs now. A page must be finished by the aggregator that started it.
   *
   * @throws {Error} if there is none at the moment
   */
  get running() {
    if (this.#backend === undefined) throw new Error('the aggregator is not running');
    return this.#backend;
  }

  /** Stops the aggregator and removes its directory. */
  async close() {
    this.#closed = true;
    clearTimeout(this.#restartTimer);
    process.removeListener('exit', this.#onExit);
    await Promise.resolve(this.starting).catch(() => {});
    await this.#backend?.close();
    this.#removeDirectory();
  }

  #removeDirectory() {
    if (this.directory !== '') Spool.removeSync(this.directory);
  }
}

module.exports = { AggregatorSupervisor };
