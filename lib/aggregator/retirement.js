'use strict';

// Runs with the aggregator. Adds the numbers of dead workers to the retired totals. Writes the totals to the
// spool, for the next thread, before it removes the files of the dead workers.

const { RETIRED_FILE } = require('../spool/sweep');
const { fromBase64 } = require('../source/byte-buffers');
const { isTransient } = require('../spool/safe-files');
const { debug } = require('../options/debug-log');
const { unref } = require('../event-loop/timers');

// Writing the retired totals takes at most a twentieth of the time, even if workers die all the time. Totals
// that a page needs are written at once, which takes less time than the page.
const SAVE_PAUSE_FACTOR = 20;
const RETRY_MILLISECONDS = 5000;
const SHORT_PAUSE = 100; // milliseconds; a shorter pause is not worth a timer

/** @typedef {import('../spool/spool').Spool} Spool */

/**
 * How a worker has died.
 *
 * @typedef {object} Death
 * @property {boolean} isLastExpected whether its 'exit' handler has run, which writes its last columns
 * @property {boolean} [isReplaced] of a thread that lives on and has joined again: only what has ended in it
 *   is added
 * @property {string} [lastSource] that it has sent over IPC, in base64: columns and the end of their log
 */

/**
 * @callback OnSaved
 * @param {number[]} workerIds dead workers that have become part of the totals
 * @param {Uint8Array} [totals] all totals, for the next thread, if they could not be written
 * @returns {void}
 */

class Retirement {
  #store;
  #spool;
  #readLog;
  #onRefused;
  #onSaved;
  /**
   * Dead workers with a file that could not be read yet: they are shown as if they were alive, and retiring
   * them must be tried again.
   *
   * @type {Set<number>}
   */
  unread = new Set();
  /** @type {Map<number, Death>} dead workers whose files have not been removed yet */
  #deaths = new Map();
  /** @type {number[]} workers that were retired since the totals were saved last */
  #unsaved = [];
  #isSaveScheduled = false;
  /** When the retired totals may be written again, by performance.now(). */
  #nextSave = 0;
  #isClosed = false;

  /**
   * @param {object} options
   * @param {import('../store/cluster-store').ClusterStore} options.store
   * @param {() => Spool | undefined} options.spool the current spool; undefined if no directory can be
   *   written
   * @param {(workerId: number, log: string, from: number, to: number) => Buffer} options.readLog
   * @param {(reason: string, error: unknown) => void} options.onRefused called for each file that cannot be
   *   used
   * @param {OnSaved} options.onSaved called when the totals of dead workers have been saved
   */
  constructor({ store, spool, readLog, onRefused, onSaved }) {
    this.#store = store;
    this.#spool = spool;
    this.#readLog = readLog;
    this.#onRefused = onRefused;
    this.#onSaved = onSaved;
  }

  /**
   * Restores the totals of an earlier thread.
   *
   * @param {Uint8Array} [unwritten] totals that it could not write
   * @throws {NodeJS.ErrnoException} if they can be read later
   */
  restore(unwritten) {
    try {
      const written = unwritten ?? this.#spool()?.readIfPresent(RETIRED_FILE);
      if (written === undefined) return;
      this.#store.restoreRetired(Buffer.from(written.buffer, written.byteOffset, written.length));
      if (unwritten !== undefined) this.saveSoon();
    } catch (error) {
      if (isTransient(error)) throw error;
      this.#onRefused('restore-retired', error);
    }
  }

  /**
   * Adds a dead worker's numbers to the retired totals: its last columns, or newer ones that it wrote to a
   * file.
   *
   * @param {number} workerId
   * @param {Death} [death] absent if it is tried again
   * @returns {boolean} false if a file of the worker cannot be read at the moment
   */
  retire(workerId, death) {
    if (death !== undefined) this.#deaths.set(workerId, death);
    if (!this.#store.isClosed(workerId) && this.readFilesOf(workerId).later !== undefined) {
      this.unread.add(workerId);
      return false;
    }
    this.unread.delete(workerId);
    this.#store.retire(workerId, death?.isReplaced);
    this.#unsaved.push(workerId);
    // If the columns came in a message, they exist only in this process, so they are saved before the next
    // page.
    if (death?.lastSource === undefined) this.saveSoon();
    else this.save();
    return true;
  }

  /**
   * Writes the totals or, if there is no space or no directory, gives them to the primary. Then removes the
   * files of the workers that they include.
   */
  save() {
    if (this.#isClosed) return;
    const workerIds = this.#unsaved.splice(0);
    const start = performance.now();
    const spool = this.#spool();
    let totals;
    let isWritten = false;
    try {
      totals = this.#store.encodeRetired();
      spool?.writeAtomically(RETIRED_FILE, totals);
      isWritten = spool !== undefined;
    } catch (error) {
      this.#onRefused('save-retired', error);
      this.#nextSave = start + RETRY_MILLISECONDS;
      this.saveSoon();
      if (totals === undefined) {
        this.#unsaved.unshift(...workerIds);
        return;
      }
    }
    const end = performance.now();
    this.#nextSave = Math.max(this.#nextSave, end + (end - start) * SAVE_PAUSE_FACTOR);
    // Before the files are removed, because until then the next thread could read them: it restores what the
    // primary has, if the primary has any totals.
    if (isWritten) this.#onSaved([]);
    else this.#onSaved(workerIds, totals);
    this.#store.noteSaved();
    for (const workerId of workerIds) {
      this.#spool()?.unlinkAllOf(workerId);
      this.#deaths.delete(workerId);
    }
    if (isWritten && workerIds.length > 0) this.#onSaved(workerIds);
  }

  /** Stops writing. */
  close() {
    this.#isClosed = true;
  }

  /**
   * Writes the totals as soon as the limit on writing time allows. Several deaths are written together. There
   * is at most one timer.
   */
  saveSoon() {
    if (this.#isSaveScheduled) return;
    this.#isSaveScheduled = true;
    const save = () => {
      this.#isSaveScheduled = false;
      this.save();
    };
    const pause = this.#nextSave - performance.now();
    // Until then the dead workers' files stay, so that a new thread could read them.
    if (pause > SHORT_PAUSE) unref(setTimeout(save, pause));
    else setImmediate(save);
  }

  /**
   * Applies the columns that a worker has written. Those that were applied before, or that a later one
   * replaces, change nothing.
   *
   * @param {number} workerId
   * @returns {{files: string[], later: unknown}} `later`: why one of them cannot be read at the moment;
   *   undefined if all can
   */
  readFilesOf(workerId) {
    const spool = this.#spool();
    const death = this.#deaths.get(workerId);
    /** @type {unknown} */
    let later;
    const onError = (/** @type {unknown} */ error) => {
      if (isTransient(error)) later = error;
    };
    /** @type {string[]} */
    let files = [];
    try {
      files = spool?.columnsOfWorker(workerId) ?? [];
    } catch (error) {
      debug('the directory cannot be read: %s', error);
      onError(error);
    }
    const sources = [
      ...files.map(file => ({ file, read: () => spool?.readIfPresent(file) })),
      { file: 'a message', read: () => death?.lastSource && fromBase64(death.lastSource) },
    ];
    for (const { file, read } of sources) {
      try {
        const bytes = read();
        if (bytes) this.#store.apply(workerId, bytes, (...range) => this.#readLog(workerId, ...range));
      } catch (error) {
        const { code } = /** @type {any} */ (error);
        onError(error);
        // 'length': a worker that is killed while it writes leaves an incomplete file.
        if (code === 'sequence' || code === 'length') debug('%s is ignored: %s', file, error);
        else this.#onRefused(death === undefined ? 'restore-worker' : `exit-${code}`, error);
      }
    }
    const isMissing = death?.isLastExpected && this.#store.worker(workerId)?.isLast !== true;
    if (isMissing && later === undefined)
      this.#onRefused('exit-missing', `worker ${workerId} could not write its last numbers`);
    return { files, later };
  }
}

module.exports = { Retirement };
