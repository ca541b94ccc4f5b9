'use strict';

// Runs with the aggregator. Reads the answers of workers and applies them to the store. An answer that cannot
// be used is counted, and the worker's earlier numbers stay.

const { fromBase64 } = require('../source/byte-buffers');
const { logName } = require('../spool/file-names');
const { isTransient, systemError } = require('../spool/safe-files');

/**
 * @typedef {object} Answer
 * @property {number} workerId
 * @property {string} [file] bare name in the spool
 * @property {number} [maxBytes] how long the file is according to the worker; a longer one is refused
 * @property {string} [source] in base64: columns and the end of their log
 * @property {Uint8Array} [bytes] the same, in an ArrayBuffer that nothing else uses
 * @property {unknown[]} [metrics] of a worker that runs prom-client, as JSON
 */

/**
 * Why the last answer of a worker could not be used: the page shows earlier numbers.
 *
 * @typedef {object} Failure
 * @property {string} [badLog] name of a log that cannot be used: the worker must start another
 * @property {boolean} [isUnreadable] whether the worker must answer over IPC, because a file could not be
 *   read at the moment, or twice
 */

class WorkerAnswers {
  #store;
  #current;
  #onRefused;
  #kept;

  /**
   * @param {import('../store/cluster-store').ClusterStore} store
   * @param {import('./current-spool').CurrentSpool} current
   * @param {(reason: string, error: unknown) => void} onRefused called for each answer that cannot be used
   */
  constructor(store, current, onRefused) {
    this.#store = store;
    this.#current = current;
    this.#onRefused = onRefused;
    /** @type {Map<number, string[]>} by worker: its columns that the next thread may need */
    this.#kept = new Map();
    /** @type {Set<number>} workers to ask again for this page */
    this.again = new Set();
    /** @type {Map<number, Failure>} by worker whose last answer could not be used */
    this.failures = new Map();
  }

  /** @param {Answer} answer */
  apply({ workerId, file, maxBytes, source, metrics, bytes }) {
    try {
      if (this.#store.isClosed(workerId)) {
        if (file !== undefined) this.#current.spool?.discard(file);
      } else if (metrics !== undefined) {
        this.#store.applyJson(workerId, metrics);
      } else {
        const buffer = this.#columnsOf({ file, maxBytes, source, bytes });
        this.#store.apply(workerId, buffer, (...range) => this.readLog(workerId, ...range));
        this.keep(workerId, file === undefined ? [] : [file]);
        // The worker did not find the directory. If it has been removed, the workers need a new one.
        if (source !== undefined) this.#loseIfGone('a worker found it gone');
      }
      this.#clear(workerId);
    } catch (error) {
      this.#refuse(workerId, file, error);
    }
  }

  /**
   * @param {number} workerId
   * @param {string} log its name
   * @param {number} from position of the first byte
   * @param {number} to position after the last one
   * @returns {Buffer}
   */
  readLog(workerId, log, from, to) {
    const { spool } = this.#current;
    if (spool === undefined) throw systemError('ENOENT', 'there is no directory');
    return spool.read(logName(workerId, log), { from, to });
  }

  /**
   * Notes the columns that the next thread may need, and removes those that they replace.
   *
   * @param {number} workerId
   * @param {string[]} files
   */
  keep(workerId, files) {
    for (const file of this.#kept.get(workerId) ?? [])
      if (!files.includes(file)) this.#current.spool?.discard(file);
    this.#kept.set(workerId, files);
  }

  /** @param {number} workerId of a worker that has been retired */
  forget(workerId) {
    this.#clear(workerId);
    this.#kept.delete(workerId);
  }

  /** @param {number} workerId of a worker of which no answer has failed any more */
  #clear(workerId) {
    this.again.delete(workerId);
    this.failures.delete(workerId);
  }

  /**
   * @param {number} workerId
   * @param {string | undefined} file
   * @param {unknown} error
   */
  #refuse(workerId, file, error) {
    const { code, log } = /** @type {any} */ (error);
    const earlier = this.failures.get(workerId);
    const failure = { ...earlier };
    this.failures.set(workerId, failure);
    this.#onRefused(typeof code === 'string' ? code : 'unknown', error);
    // A worker answers one request at a time, so its answers come in order, and the stored identity must be
    // wrong: the next scrape accepts the answer.
    if (code === 'incarnation' || code === 'sequence') this.#store.worker(workerId)?.forgetIdentity();
    if (log !== undefined && !isTransient(error)) failure.badLog = log;
    // The worker is asked again in this scrape: for another log, for another file, or over IPC if a file
    // would fail as well.
    if (log !== undefined || file !== undefined) this.again.add(workerId);
    if (file === undefined) return;
    this.#current.spool?.discard(file);
    const wouldRepeat = earlier !== undefined || isTransient(error);
    if (!this.#loseIfGone(code) && wouldRepeat) failure.isUnreadable = true;
  }

  /**
   * @param {string} reason
   * @returns {boolean} whether the directory is gone
   */
  #loseIfGone(reason) {
    const isGone = this.#current.spool?.isPresent() === false;
    if (isGone) this.#current.lose(reason);
    return isGone;
  }

  /**
   * @param {Omit<Answer, 'workerId'>} answer
   * @returns {Buffer}
   */
  #columnsOf({ file, maxBytes, source, bytes }) {
    if (bytes !== undefined) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (file === undefined) return fromBase64(source ?? '');
    const { spool } = this.#current;
    if (spool === undefined) throw systemError('ENOENT', 'there is no directory');
    return spool.read(file, { maxBytes });
  }
}

module.exports = { WorkerAnswers };
