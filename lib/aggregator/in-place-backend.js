'use strict';

// Runs on the primary's event loop, in slices, if no aggregator thread can be started.

const { runInSlices } = require('../event-loop/slices');
const { Aggregator } = require('./aggregator');
const { compressBodyAsync } = require('./gzip');
const { debug } = require('../options/debug-log');

/** @typedef {import('../cluster/primary/aggregator-backend').BackendOptions} BackendOptions */
/** @typedef {import('../cluster/primary/aggregator-backend').Events} Events */
/** @typedef {import('../cluster/primary/aggregator-backend').InPlaceReason} InPlaceReason */
/** @typedef {import('./aggregator').Format} Format */

class InPlaceBackend {
  #aggregator;
  /** @type {Promise<unknown>} operations run one at a time and in order, as in a thread */
  #queue = Promise.resolve();

  /**
   * @param {BackendOptions} options
   * @param {InPlaceReason} reason
   * @param {Events} events
   */
  constructor(options, reason, { onDirectory, onRetired }) {
    this.inPlaceReason = reason;
    this.#aggregator = new Aggregator({
      ...options,
      // proper-lockfile would hook signals, and this process belongs to the application.
      lock: false,
      onDirectory,
      onRetired,
    });
  }

  start() {
    return this.#aggregator.open();
  }

  /**
   * @param {import('../cluster/primary/aggregator-backend').Sent} op
   * @param {...any} args
   */
  send(op, ...args) {
    void this.#enqueue(() => this.#perform(op, args));
  }

  /**
   * @param {import('../cluster/primary/aggregator-backend').Requested} op
   * @param {...any} args
   * @returns {Promise<any>}
   */
  request(op, ...args) {
    // A push is not in the queue, because it may take minutes.
    return op === 'deliverPush' ? this.#perform(op, args) : this.#enqueue(() => this.#perform(op, args));
  }

  /**
   * @param {string} op a method of the aggregator
   * @param {any[]} args
   */
  async #perform(op, [request, ...rest]) {
    const aggregator = /** @type {any} */ (this.#aggregator);
    if (op !== 'render' && op !== 'finish') return aggregator[op](request, ...rest);
    const { formats } = request;
    const result = await runInSlices(aggregator[op]({ ...request, formats: plain(formats) }));
    return { ...result, bodies: await this.#completed(result.bodies, formats) };
  }

  /**
   * Compresses in libuv's thread pool, and writes files in slices.
   *
   * @param {any[] | undefined} bodies
   * @param {Format[]} formats
   */
  async #completed(bodies, formats) {
    if (bodies === undefined) return undefined;
    const compressed = bodies.map((body, i) => (formats[i].gzip ? compressBodyAsync(body) : body));
    return runInSlices(this.#aggregator.writeFiles(await Promise.all(compressed), formats));
  }

  close() {
    return this.request('close');
  }

  /** Nothing runs after the process's 'exit' handler. */
  terminate() {}

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
function plain(formats) {
  return formats.map(format => ({ ...format, gzip: false, file: undefined }));
}

module.exports = { InPlaceBackend };
