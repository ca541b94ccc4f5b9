'use strict';

// Keeps an aggregator running for the primary: starts it when it is first needed, replaces a thread that is lost,
// aggregates in place where threads do not last, and tells each new one what the lost one still had to do.

const { debuglog } = require('node:util');
const { startBackend } = require('./aggregator-backend');
const { ThreadLostError } = require('./thread-backend');

const debug = debuglog('prom-client-cluster');

// A backend that does not come up is not waited for longer than this to close it. Starting a thread takes some 50 ms.
const START_MILLISECONDS = 5000;

// Threads that die as fast as they are started are not started for ever.
const MAX_LOSSES = 5;
const LOSS_WINDOW_MILLISECONDS = 60_000;

// Where none of them has written a page, a round's last try is not for another one.
const MAX_LOSSES_IN_VAIN = 2;

/** @typedef {import('../aggregator/aggregator').Answer} Answer */

/**
 * What the supervisor tells the primary.
 *
 * @typedef {object} SupervisorEvents
 * @property {(directory: string) => void} onDirectory where the snapshot files are from now on
 * @property {() => void} onLost all that living workers have told is gone; another aggregator is being started
 * @property {() => void} onReplaced it runs
 */

class AggregatorSupervisor {
  #options;
  #events;
  /** @type {Promise<any> | undefined} */
  #starting = undefined;
  /** @type {Awaited<ReturnType<typeof startBackend>> | undefined} */
  #backend = undefined;
  #directory = '';
  /** @type {Set<number>} dead workers that the aggregator has not yet confirmed to be among the retired */
  #retiring = new Set();
  #retired = 0;
  /** @type {(() => void)[]} who waits until a dead worker is among the retired */
  #onRetired = [];
  /** @type {string[]} files to delete that were named while there was no backend */
  #orphans = [];
  #lostThreads = 0;
  /** @type {number[]} when threads were lost lately, by performance.now() */
  #losses = [];
  /** How many threads were lost since one has written a page. */
  #lossesInVain = 0;
  #closed = false;
  #onExit = () => this.#removeDirectory();

  /**
   * @param {import('./aggregator-backend').BackendOptions} options
   * @param {SupervisorEvents} events
   */
  constructor(options, events) {
    this.#options = options;
    this.#events = events;
  }

  /** Where the spool is, or was; '' where there is none. */
  get directory() {
    return this.#directory;
  }

  /** Counts the backends: what one was told, the next does not know. */
  get lostThreads() {
    return this.#lostThreads;
  }

  /** How many dead workers' numbers are among the retired totals. */
  get retired() {
    return this.#retired;
  }

  /** How many dead workers' numbers are not yet. */
  get retiring() {
    return this.#retiring.size;
  }

  /** Settled when the aggregator runs; undefined where nobody has needed it. */
  get starting() {
    return this.#starting;
  }

  /**
   * Starts the aggregator, once.
   *
   * @returns {Promise<void>}
   */
  start() {
    this.#starting ??= this.#handled(this.#startBackend(undefined));
    return this.#starting;
  }

  /**
   * Nobody may be waiting for it at the moment.
   *
   * @template T
   * @param {Promise<T>} starting
   */
  #handled(starting) {
    starting.catch(error => debug('the aggregator does not start: %s', error));
    return starting;
  }

  /** @param {string | undefined} adopt the directory of a thread that is gone */
  async #startBackend(adopt) {
    if (!process.listeners('exit').includes(this.#onExit)) process.on('exit', this.#onExit);
    const events = {
      onDirectory: (/** @type {string} */ directory) => this.#onDirectory(directory),
      onRetired: (/** @type {number[]} */ workerIds) => this.#noteRetired(workerIds),
      onRestart: () => this.#replace(),
    };
    this.#backend = await startBackend(this.#options, events, adopt);
    for (const workerId of this.#retiring) this.#backend.retire(workerId);
    for (const file of this.#orphans.splice(0)) this.#backend.discard(file);
    if (adopt !== undefined) this.#events.onReplaced();
  }

  /** The thread died: a new one goes on with the retired totals. */
  #replace() {
    if (this.#closed) return;
    this.#lostThreads++;
    this.#backend = undefined;
    const now = performance.now();
    this.#losses = [...this.#losses.filter(time => now - time < LOSS_WINDOW_MILLISECONDS), now];
    this.#lossesInVain++;
    const isHopeless = this.#losses.length > MAX_LOSSES || this.#lossesInVain >= MAX_LOSSES_IN_VAIN;
    if (isHopeless) this.#options = { ...this.#options, inPlace: true };
    this.#starting = this.#handled(this.#startBackend(this.#directory || undefined));
    this.#events.onLost();
  }

  /** @param {string} directory */
  #onDirectory(directory) {
    if (directory === this.#directory) return;
    this.#directory = directory;
    this.#events.onDirectory(directory);
  }

  /** @param {number[]} workerIds */
  #noteRetired(workerIds) {
    for (const workerId of workerIds) if (this.#retiring.delete(workerId)) this.#retired++;
    for (const resolve of this.#onRetired.splice(0)) resolve();
  }

  /** @param {Answer} answer of a worker, or of the primary itself */
  answer(answer) {
    if (this.#backend !== undefined) this.#backend.answer(answer);
    else if (answer.file !== undefined) this.#orphans.push(answer.file);
  }

  /** @param {string} file that came too late to count */
  discard(file) {
    if (this.#backend === undefined) this.#orphans.push(file);
    else this.#backend.discard(file);
  }

  /**
   * Has the numbers of a dead worker counted among the retired totals.
   *
   * @param {number} workerId
   */
  retire(workerId) {
    this.#retiring.add(workerId);
    this.#backend?.retire(workerId);
  }

  /** @returns {Promise<void>} resolves when all dead workers' numbers are, or with close() */
  async allRetired() {
    while (this.#retiring.size > 0 && !this.#closed)
      await new Promise(resolve => this.#onRetired.push(() => resolve(undefined)));
  }

  /** @param {ArrayBuffer} memory of a text that nobody needs any more, for the next */
  reuse(memory) {
    this.#backend?.reuse(memory);
  }

  /**
   * The aggregator itself, for one page: a page that one has begun another cannot finish.
   *
   * @throws {ThreadLostError} where there is none at the moment
   */
  get running() {
    const backend = this.#backend;
    if (backend === undefined || !backend.isRunning)
      throw new ThreadLostError('the aggregator is not running');
    return backend;
  }

  /** Notes that it has written a page. */
  noteWritten() {
    this.#lossesInVain = 0;
  }

  /** Ends the aggregator and removes its directory. */
  async close() {
    this.#closed = true;
    process.removeListener('exit', this.#onExit);
    for (const resolve of this.#onRetired.splice(0)) resolve();
    // Its thread keeps nothing alive.
    await Promise.race([
      this.#starting,
      new Promise(resolve => setTimeout(resolve, START_MILLISECONDS).unref()),
    ]);
    await this.#backend?.close();
    this.#removeDirectory();
  }

  #removeDirectory() {
    if (this.#directory === '') return;
    const { Spool } = require('../spool/spool');
    Spool.removeSync(this.#directory);
  }
}

module.exports = { AggregatorSupervisor };
