'use strict';

// The callers that wait for the cluster's metrics, each with a deadline and a format.

// Node's timers overflow beyond 2^31 ms; nobody waits that long for metrics.
const MAX_TIMEOUT_MILLISECONDS = 600_000;

// Limits of a worker's request: far more names than fit into a URL.
const MAX_NAMES = 10_000;
const MAX_NAMES_CHARACTERS = 2 ** 20;

/**
 * `file`: bare name of the file to which the aggregator writes the page, for a worker. `push`: the aggregator
 * builds a push of remote write instead of a page.
 *
 * @typedef {import('../../exposition/page-format').PageFormat & {
 *   selfMetrics: boolean,
 *   file?: string,
 *   push?: import('../../aggregator/push-sessions').PushRequest,
 * }} Format
 */
/** @typedef {import('../../push/aggregator-sender').BuiltPush} BuiltPush */
/** @typedef {import('../../exposition/page-bytes').PageBytes} Bytes */
/** @typedef {{file: string, length: number}} PageFile a page in a file */

/** A caller and the promise that it holds. */
class ScrapeCaller {
  /** @type {NodeJS.Timeout[]} */
  #timers = [];
  /** @type {(page: any) => void} */
  #resolve = () => {};
  /** @type {(error: Error) => void} */
  #reject = () => {};
  #isSettled = false;
  /** Whether its time is up: it gets the last known numbers of the workers that have not answered. */
  isLate = false;

  /**
   * @param {Format} format
   * @param {number} timeout milliseconds from now
   */
  constructor(format, timeout) {
    this.format = format;
    /** Equal for equal formats. */
    this.key = JSON.stringify({ ...format, push: format.push?.session.id });
    this.deadline = performance.now() + Math.min(timeout, MAX_TIMEOUT_MILLISECONDS);
    /** @type {Promise<Bytes | PageFile | BuiltPush | undefined>} */
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /**
   * @param {Bytes | PageFile | BuiltPush | undefined} page
   * @returns {boolean} false if the caller does not wait any more
   */
  resolve(page) {
    const isAwaited = !this.#isSettled;
    this.#settle();
    this.#resolve(page);
    return isAwaited;
  }

  /** @param {Error} error */
  reject(error) {
    this.#settle();
    this.#reject(error);
  }

  #settle() {
    this.#isSettled = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /**
   * Calls a function if this caller is neither answered nor rejected by then.
   *
   * @param {number} milliseconds after the deadline
   * @param {() => void} callback
   */
  afterDeadline(milliseconds, callback) {
    const timeLeft = Math.max(this.deadline - performance.now(), 0);
    this.#timers.push(setTimeout(callback, Math.max(Math.ceil(timeLeft + milliseconds), 1)));
  }
}

/**
 * @param {ScrapeCaller[]} callers
 * @returns {Format[]}
 */
function distinctFormats(callers) {
  return [...new Map(callers.map(({ key, format }) => [key, format])).values()];
}

/**
 * @param {unknown} names of metrics, from a message or from the program
 * @returns {boolean} whether a worker can ask for them
 */
function isListOfNames(names) {
  if (!Array.isArray(names) || names.length > MAX_NAMES) return false;
  let characters = 0;
  return names.every(name => typeof name === 'string' && (characters += name.length) <= MAX_NAMES_CHARACTERS);
}

module.exports = { MAX_TIMEOUT_MILLISECONDS, ScrapeCaller, distinctFormats, isListOfNames };
