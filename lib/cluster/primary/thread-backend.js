'use strict';

// Runs on the primary's loop. The aggregator thread as seen from here: starts it, sends messages to it, waits
// for its replies, and notices when it ends or hangs.

const { getHeapStatistics } = require('node:v8');
const { PACKAGE_VERSION } = require('../../options/package-version');
const { debug } = require('../../options/debug-log');
const { unref } = require('../../event-loop/timers');

/** @typedef {import('./aggregator-backend').BackendOptions} BackendOptions */
/** @typedef {import('./aggregator-backend').Events} Events */

// Merging and writing a million series takes half a second. A thread that does not reply hangs, because its
// file system does for example.
const HANG_MILLISECONDS = 30_000;

/** Id of the message with which a thread says that it is ready. */
const START_ID = 0;

/**
 * @param {any} error
 * @returns {boolean} whether a thread has ended because its heap was full
 */
function isOutOfMemory(error) {
  return error?.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/**
 * A request that has no reply yet.
 *
 * @typedef {object} Pending
 * @property {(result: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {boolean} isLong whether it may take minutes, and does not keep the process alive
 */

class ThreadBackend {
  inPlaceReason = /** @type {const} */ ('');
  /** @type {import('node:worker_threads').Worker | undefined} */
  #thread = undefined;
  #file;
  #options;
  #events;
  /** @type {Map<number, Pending>} by id */
  #pending = new Map();
  #nextId = START_ID + 1;
  /** @type {Error | undefined} with which the thread ended */
  #error = undefined;
  #closing = false;

  /**
   * @param {import('./thread-file').ThreadFile} file
   * @param {BackendOptions} options
   * @param {Events} events
   */
  constructor(file, options, events) {
    this.#file = file;
    this.#options = options;
    this.#events = events;
  }

  /**
   * Starts the thread without this process's command-line options or, if that fails, with them: Yarn PnP
   * needs its loader. Under Node's permission model it always gets them: otherwise the thread would not be
   * restricted, and could write files that this process may not remove.
   *
   * @returns {Promise<void>} rejected if no thread can be started
   */
  async start() {
    const clean = { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } };
    if ('permission' in process) return this.#startThread({});
    try {
      await this.#startThread(clean);
    } catch (error) {
      if (isOutOfMemory(error)) throw error;
      debug('the thread does not start, trying with inherited options: %s', error);
      await this.#startThread({});
    }
  }

  /** @param {object} options */
  async #startThread(options) {
    const { Worker } = require('node:worker_threads');
    const { directory, fallbacks, adopt, totals, retiredMaxAge, activeSeries, inMemory } = this.#options;
    const spool = { directory, fallbacks, adopt, inMemory };
    const { main, isCode } = this.#file;
    const thread = new Worker(main, {
      ...options,
      eval: isCode,
      name: 'prom-client-cluster',
      // The thread's heap may become as large as this process's own.
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(getHeapStatistics().heap_size_limit / 2 ** 20) },
      workerData: { version: PACKAGE_VERSION, ...spool, totals, retiredMaxAge, activeSeries },
    });
    this.#thread = thread;
    this.#error = undefined;
    thread.on('message', message => {
      // Messages that it sent before it was given up may still arrive.
      if (thread === this.#thread) this.#receive(message);
    });
    // Without a listener an error in the thread would be an uncaught exception of the application.
    thread.on('error', error => {
      debug('the aggregator thread failed: %s', error);
      this.#error = error;
    });
    thread.on('exit', () => this.#onThreadLost(thread));
    // The thread creates its directory before it is ready, and a file system may hang.
    await this.#replyOf(thread, START_ID);
  }

  /** @param {any} message */
  #receive(message) {
    switch (message.op) {
      case 'directory':
        this.#events.onDirectory(message.directory);
        break;
      case 'retired':
        this.#events.onRetired(message.workerIds, message.totals);
        break;
      default:
        if (message.error !== undefined) this.#settle(message.id)?.reject(new Error(message.error));
        else this.#settle(message.id)?.resolve(message.result);
    }
  }

  /** @param {number} id */
  #settle(id) {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if ([...this.#pending.values()].every(({ isLong }) => isLong)) this.#thread?.unref();
    return pending;
  }

  /** @param {import('node:worker_threads').Worker} thread */
  #onThreadLost(thread) {
    if (thread !== this.#thread) return;
    this.#thread = undefined;
    const pending = [...this.#pending.values()];
    const isStarting = this.#pending.has(START_ID);
    this.#pending.clear();
    if (!this.#closing && !isStarting) this.#events.onRestart(this.#error);
    const gone = new Error('the aggregator thread is gone');
    for (const { reject } of pending) reject((isStarting && this.#error) || gone);
  }

  /**
   * @param {import('./aggregator-backend').Sent} op
   * @param {...any} args
   */
  send(op, ...args) {
    const bytes = op === 'answer' ? args[0].bytes : undefined;
    this.#thread?.postMessage({ op, args }, bytes === undefined ? [] : [bytes.buffer]);
  }

  async close() {
    this.#closing = true;
    if (this.#thread === undefined) return;
    const thread = this.#thread;
    const ended = new Promise(resolve => thread.once('exit', resolve));
    await this.request('close').catch(() => {});
    // Referenced until it has ended, because callers of close() expect the directory to be removed.
    thread.ref();
    await ended;
  }

  /** Ends the thread without waiting for it, for the process's 'exit' handler. */
  terminate() {
    this.#thread?.terminate();
  }

  /**
   * A push of remote write may take minutes. Any other request is answered soon; if not, the thread hangs and
   * is replaced.
   *
   * @param {import('./aggregator-backend').Requested} op
   * @param {...unknown} args
   * @returns {Promise<any>}
   */
  request(op, ...args) {
    const thread = this.#thread;
    if (thread === undefined) return Promise.reject(new Error('there is no aggregator thread'));
    const isLong = op === 'deliverPush';
    const id = this.#nextId++;
    const reply = this.#replyOf(thread, id, isLong);
    try {
      thread.postMessage({ op, args, id });
    } catch (error) {
      this.#settle(id)?.reject(/** @type {Error} */ (error));
    }
    return reply;
  }

  /**
   * An idle thread does not keep the process alive. It does while a reply is pending.
   *
   * @param {import('node:worker_threads').Worker} thread
   * @param {number} id of the request
   * @param {boolean} [isLong] see Pending
   */
  async #replyOf(thread, id, isLong = false) {
    const reply = new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject, isLong }));
    if (isLong) return reply;
    thread.ref();
    const replace = () => {
      debug('the aggregator thread does not answer');
      // Before terminate(), because a thread that hangs in the kernel takes a long time to end.
      this.#onThreadLost(thread);
      thread.terminate();
    };
    const timer = unref(setTimeout(replace, HANG_MILLISECONDS));
    return reply.finally(() => clearTimeout(timer));
  }
}

module.exports = { ThreadBackend, isOutOfMemory };
