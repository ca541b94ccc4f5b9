'use strict';

// Runs with the aggregator. Reads the answers of workers and applies them to the store. One that cannot be
// used is counted, and the worker's earlier numbers stay.

const { fromBase64 } = require('../source/byte-buffers');
const { isTransient, systemError } = require('../spool/safe-files');

// Errors of a snapshot that a second request in the same round may repair: the worker sends its dictionary
// from the start.
const ASK_AGAIN_CODES = new Set(['dictionary-start', 'dictionary', 'numbers']);

/**
 * @typedef {object} Answer
 * @property {number} workerId
 * @property {string} [file] bare name in the spool
 * @property {number} [maxBytes] how long the file is according to the worker; a longer one is refused
 * @property {string} [snapshot] base64
 * @property {Uint8Array} [bytes] the snapshot itself, in an ArrayBuffer that nothing else uses
 * @property {unknown[]} [metrics] of a worker that runs prom-client, as JSON
 */

class WorkerAnswers {
  #store;
  #current;
  #onRefused;
  /**
   * @param {import('../store/cluster-store').ClusterStore} store
   * @param {import('./current-spool').CurrentSpool} current
   * @param {(reason: string, error: unknown) => void} onRefused called for each answer that cannot be used
   */
  constructor(store, current, onRefused) {
    this.#store = store;
    this.#current = current;
    this.#onRefused = onRefused;
    /** @type {Set<number>} workers to ask again for this page */
    this.again = new Set();
    /** @type {Set<number>} workers whose last answer could not be used: the page shows earlier numbers */
    this.unusable = new Set();
    /** @type {Set<number>} workers that have to answer over IPC, because their files cannot be used */
    this.unreadable = new Set();
  }

  /** @param {Answer} answer */
  apply({ workerId, file, maxBytes, snapshot, metrics, bytes }) {
    try {
      let isRetained = true;
      if (this.#store.isClosed(workerId)) {
        if (file !== undefined) this.#current.spool?.unlink(file);
      } else if (metrics !== undefined) {
        this.#store.applyJson(workerId, metrics);
      } else {
        const buffer = this.#snapshotOf({ file, maxBytes, snapshot, bytes });
        this.#store.apply(workerId, buffer);
        if (bytes === undefined) isRetained = this.#retain(workerId, buffer, file);
        // The worker did not find the directory. If it has been removed, exit files and the other workers
        // need a new one.
        if (snapshot !== undefined) this.#loseIfGone('a worker found it gone');
      }
      if (isRetained) this.again.delete(workerId);
      this.unusable.delete(workerId);
      this.unreadable.delete(workerId);
    } catch (error) {
      this.#refuse(workerId, file, error);
    }
  }

  /** @param {number} workerId of a worker that has been retired */
  forget(workerId) {
    this.again.delete(workerId);
    this.unusable.delete(workerId);
    this.unreadable.delete(workerId);
  }

  /**
   * @param {number} workerId
   * @param {string | undefined} file
   * @param {unknown} error
   */
  #refuse(workerId, file, error) {
    const { code } = /** @type {any} */ (error);
    const isRepeated = this.unusable.has(workerId);
    this.unusable.add(workerId);
    this.#onRefused(typeof code === 'string' ? code : 'unknown', error);
    const worker = this.#store.worker(workerId);
    if (code === 'dictionary' || code === 'numbers') worker?.invalidateDictionary();
    // A worker answers one request at a time, so its answers come in order: the next scrape takes the answer.
    if (code === 'incarnation' || code === 'sequence') worker?.forgetIdentity();
    if (ASK_AGAIN_CODES.has(code)) this.again.add(workerId);
    if (file === undefined) return;
    this.#current.spool?.discard(file);
    // It is asked again in this scrape: for another file, or to answer over IPC if that would fail as well.
    this.again.add(workerId);
    const wouldRepeat = isRepeated || isTransient(error);
    if (!this.#loseIfGone(code) && wouldRepeat) this.unreadable.add(workerId);
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
   * Retains a snapshot for the next thread, or removes it if there will be none.
   *
   * @param {number} workerId
   * @param {Buffer} snapshot
   * @param {string} [file]
   * @returns {boolean} false if the next thread needs the worker's full dictionary
   */
  #retain(workerId, snapshot, file) {
    const { spool, lastSnapshots } = this.#current;
    if (lastSnapshots?.store(workerId, snapshot, file)) {
      this.#store.worker(workerId)?.requestFullDictionary();
      return false;
    }
    if (lastSnapshots === undefined && file !== undefined) spool?.unlink(file);
    return true;
  }

  /**
   * @param {Omit<Answer, 'workerId'>} answer
   * @returns {Buffer}
   */
  #snapshotOf({ file, maxBytes, snapshot, bytes }) {
    if (bytes !== undefined) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (file === undefined) return fromBase64(snapshot ?? '');
    const { spool } = this.#current;
    if (spool === undefined) throw systemError('ENOENT', 'there is no directory');
    return spool.read(file, maxBytes);
  }
}

module.exports = { WorkerAnswers };
