'use strict';

// Where the aggregator runs, behind one face: in a thread (started clean; else with the options that this process was
// started with, as Yarn PnP needs them), or, where no thread can be had, in slices on this loop.

const { debuglog } = require('node:util');
const path = require('node:path');

const debug = debuglog('prom-client-cluster');

const THREAD_FILE = path.join(__dirname, 'aggregator-thread.js');

/** @typedef {import('./aggregator').Answer} Answer */
/** @typedef {import('./aggregator').Format} Format */
/** @typedef {import('./aggregator').RenderResult} RenderResult */
/** @typedef {import('./self-metrics').PrimaryFacts} PrimaryFacts */
/** @typedef {{formats: Format[], custom: string[], final: boolean, facts?: PrimaryFacts}} RenderRequest */
/** @typedef {{formats: Format[], aggregated: any[], facts?: PrimaryFacts}} FinishRequest */

/**
 * What the backend tells its owner.
 *
 * @typedef {object} Events
 * @property {(directory: string) => void} onDirectory
 * @property {(workerIds: number[]) => void} onRetired
 * @property {() => void} onRestart all that was known of living workers is gone
 */

/**
 * @typedef {object} BackendOptions
 * @property {string} [directory]
 * @property {number} [retiredMaxAge] milliseconds
 * @property {boolean} [inPlace] never start a thread
 */

// Merging and writing a million series takes half a second.
const HANG_MILLISECONDS = 30_000;

// Below it, a message to the thread costs more than new memory.
const MIN_REUSED_BYTES = 262_144;

/** Thrown to a scrape whose thread died: it may be tried again. */
class ThreadLostError extends Error {}

class ThreadBackend {
  /** @type {import('node:worker_threads').Worker | undefined} */
  #thread = undefined;
  #options;
  #events;
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #pending = new Map();
  #nextId = 1;
  #directory = '';
  #closing = false;

  /**
   * @param {BackendOptions} options
   * @param {Events} events
   */
  constructor(options, events) {
    this.#options = options;
    this.#events = events;
  }

  /**
   * Starts the thread.
   *
   * @param {string} [adopt] directory of a thread that is gone
   * @returns {Promise<void>} rejected where no thread can be started
   */
  async start(adopt) {
    try {
      await this.#startThread({ execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } }, adopt);
    } catch (error) {
      debug('the thread does not start clean, trying with inherited options: %s', error);
      await this.#startThread({}, adopt);
    }
  }

  /**
   * @param {object} options
   * @param {string} [adopt]
   * @returns {Promise<void>}
   */
  #startThread(options, adopt) {
    const { Worker } = require('node:worker_threads');
    const { directory, retiredMaxAge } = this.#options;
    return new Promise((resolve, reject) => {
      const thread = new Worker(THREAD_FILE, {
        ...options,
        name: 'prom-client-cluster',
        workerData: { directory, retiredMaxAge, adopt },
      });
      let started = false;
      // The thread makes its directory before it is ready, and a file system may hang.
      const watchdog = setTimeout(() => {
        reject(new Error('the aggregator thread does not start'));
        thread.terminate();
      }, HANG_MILLISECONDS);
      watchdog.unref();
      thread.on('message', message => {
        if (message.op === 'ready') {
          started = true;
          clearTimeout(watchdog);
          this.#thread = thread;
          // Idle, it must not keep the process alive; #request() holds it while a scrape is pending.
          thread.unref();
          resolve();
        } else {
          this.#receive(message);
        }
      });
      // Without a listener an error in the thread would be an uncaught exception of the application.
      thread.on('error', error => {
        debug('the aggregator thread failed: %s', error);
        reject(error);
      });
      thread.on('exit', code => {
        clearTimeout(watchdog);
        reject(new Error(`the aggregator thread ended with code ${code}`));
        if (started) this.#onThreadLost(thread);
      });
    });
  }

  /** @param {any} message */
  #receive(message) {
    switch (message.op) {
      case 'directory':
        this.#directory = message.directory;
        this.#events.onDirectory(message.directory);
        break;
      case 'retired':
        this.#events.onRetired(message.workerIds);
        break;
      case 'broken':
        // Whatever it was doing is half done: what is known is told to a new one.
        debug('the aggregator thread is broken: %s', message.message);
        if (this.#thread !== undefined) this.#giveUp(this.#thread);
        break;
      default:
        this.#settle(message.id)?.resolve(message.result);
    }
  }

  /** @param {number} id */
  #settle(id) {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#thread?.unref();
    return pending;
  }

  /** @param {import('node:worker_threads').Worker} thread */
  #onThreadLost(thread) {
    if (thread !== this.#thread) return;
    this.#thread = undefined;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    if (!this.#closing) this.#events.onRestart();
    for (const { reject } of pending) reject(new ThreadLostError('the aggregator thread is gone'));
  }

  /**
   * A thread that does not answer (its directory is on a file system that hangs), or that failed where nothing is
   * expected to, is replaced by another.
   *
   * @param {import('node:worker_threads').Worker} thread
   */
  #giveUp(thread) {
    // First: a thread that hangs in the kernel may take its time to end.
    this.#onThreadLost(thread);
    thread.terminate();
  }

  /** Whether there is a thread to talk to. */
  get isRunning() {
    return this.#thread !== undefined;
  }

  /** Where the spool is, or was; '' where there is none. */
  get directory() {
    return this.#directory;
  }

  /** @param {Answer} answer */
  answer(answer) {
    const memory = answer.bytes === undefined ? [] : [/** @type {ArrayBuffer} */ (answer.bytes.buffer)];
    this.#thread?.postMessage({ op: 'answer', answer }, memory);
  }

  /** @param {string} file that came too late to count */
  discard(file) {
    this.#thread?.postMessage({ op: 'discard', file });
  }

  /** @param {number} workerId */
  retire(workerId) {
    this.#thread?.postMessage({ op: 'retire', workerId });
  }

  /** @param {ArrayBuffer} memory of a text that nobody needs any more, for the next */
  reuse(memory) {
    if (memory.byteLength >= MIN_REUSED_BYTES) this.#thread?.postMessage({ op: 'reuse', memory }, [memory]);
  }

  /**
   * @param {RenderRequest} request
   * @returns {Promise<RenderResult>}
   */
  render(request) {
    return this.#request({ op: 'render', request });
  }

  /**
   * @param {FinishRequest} request
   * @param {RenderResult} result of render()
   * @returns {Promise<RenderResult>}
   */
  finish(request, result) {
    return this.#request({ op: 'finish', request, result: { ...result, custom: undefined } });
  }

  async close() {
    this.#closing = true;
    if (this.#thread === undefined) return;
    const thread = this.#thread;
    const ended = new Promise(resolve => thread.once('exit', resolve));
    await this.#request({ op: 'close' }).catch(() => {});
    // Held until it has ended: whoever awaits this wants to see the directory gone.
    thread.ref();
    await ended;
  }

  /** @param {object} message */
  #request(message) {
    const thread = this.#thread;
    if (thread === undefined) return Promise.reject(new ThreadLostError('there is no aggregator thread'));
    const id = this.#nextId++;
    thread.ref();
    /** @type {NodeJS.Timeout | undefined} */
    let watchdog;
    const reply = new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      watchdog = setTimeout(() => {
        debug('the aggregator thread does not answer');
        this.#giveUp(thread);
      }, HANG_MILLISECONDS);
      watchdog.unref();
      thread.postMessage({ ...message, id });
    });
    return reply.finally(() => clearTimeout(watchdog));
  }
}

class InPlaceBackend {
  #aggregator;
  #directory = '';
  /** @type {Promise<unknown>} what is to be done is done one after the other, as in a thread */
  #queue = Promise.resolve();

  /**
   * @param {BackendOptions} options
   * @param {Events} events
   * @param {string} [adopt] directory of a thread that is gone
   */
  constructor({ directory, retiredMaxAge }, { onDirectory, onRetired }, adopt) {
    const { Aggregator } = require('./aggregator');
    this.#aggregator = new Aggregator({
      directory,
      retiredMaxAge,
      adopt,
      // proper-lockfile hooks signals of the process, and this process is the application's.
      lock: false,
      onDirectory: place => {
        this.#directory = place;
        onDirectory(place);
      },
      onRetired,
    });
  }

  start() {
    return this.#aggregator.open();
  }

  get isRunning() {
    return true;
  }

  get directory() {
    return this.#directory;
  }

  /** @param {Answer} answer */
  answer(answer) {
    this.#enqueue(() => this.#aggregator.answer(answer));
  }

  /** @param {string} file that came too late to count */
  discard(file) {
    this.#enqueue(() => this.#aggregator.discard(file));
  }

  /** @param {number} workerId */
  retire(workerId) {
    this.#enqueue(() => this.#aggregator.retire(workerId));
  }

  /** Nothing is used again here: whoever still had the bytes would not find them gone, but find others. */
  reuse() {}

  /**
   * @param {RenderRequest} request
   * @returns {Promise<RenderResult>}
   */
  render(request) {
    const { runInSlices } = require('../exposition/steps');
    return this.#enqueue(async () => {
      const result = await runInSlices(
        this.#aggregator.render({ ...request, formats: uncompressed(request.formats) }),
      );
      const bodies = await compressSome(result.bodies, request.formats);
      return { ...result, bodies };
    });
  }

  /**
   * @param {FinishRequest} request
   * @param {RenderResult} result of render()
   * @returns {Promise<RenderResult>}
   */
  finish(request, result) {
    const { runInSlices } = require('../exposition/steps');
    return this.#enqueue(async () => {
      const steps = this.#aggregator.finish({ ...request, formats: uncompressed(request.formats) });
      const bodies = await compressSome(await runInSlices(steps), request.formats);
      return { ...result, custom: undefined, bodies };
    });
  }

  close() {
    return this.#enqueue(() => this.#aggregator.close());
  }

  /**
   * @template T
   * @param {() => T | Promise<T>} operation
   * @returns {Promise<T>}
   */
  #enqueue(operation) {
    const done = this.#queue.then(operation);
    this.#queue = done.catch(error => debug('aggregation failed: %s', error));
    return done;
  }
}

/** @param {Format[]} formats */
function uncompressed(formats) {
  return formats.map(format => ({ ...format, gzip: false }));
}

/**
 * In place, compression goes to the thread pool.
 *
 * @param {import('./aggregator').Body[] | undefined} bodies
 * @param {Format[]} formats
 */
async function compressSome(bodies, formats) {
  if (bodies === undefined) return undefined;
  const { compressAsync } = require('./body-compression');
  return Promise.all(bodies.map((body, i) => (formats[i].gzip ? compressAsync(body) : body)));
}

/**
 * Starts the best backend that there is.
 *
 * @param {BackendOptions} options
 * @param {Events} events
 * @param {string} [adopt] directory of a thread that is gone
 * @returns {Promise<ThreadBackend | InPlaceBackend>}
 */
async function startBackend(options, events, adopt) {
  if (!options.inPlace) {
    const backend = new ThreadBackend(options, events);
    try {
      await backend.start(adopt);
      return backend;
    } catch (error) {
      debug('no thread can be started, aggregating in place: %s', error);
    }
  }
  const backend = new InPlaceBackend(options, events, adopt);
  await backend.start();
  return backend;
}

module.exports = { startBackend, ThreadLostError };
