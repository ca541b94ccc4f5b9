'use strict';

// Runs with the aggregator. Holds the spool in use. A lost spool is replaced. If no spool could be created,
// that is tried again.

const { Spool } = require('../spool/spool');
const { isTransient } = require('../spool/safe-files');
const { debug } = require('../options/debug-log');
const { unref } = require('../event-loop/timers');

// Pause before a directory is created again after no place was writable.
const PAUSE_MILLISECONDS = 30_000;

class CurrentSpool {
  #options;
  #onReopened;
  /** @type {Spool | undefined} */
  #spool = undefined;
  /** @type {Promise<void>} directories are replaced one after the other */
  #replaced = Promise.resolve();
  /** @type {NodeJS.Timeout | undefined} */
  #timer = undefined;
  #isClosed = false;

  /**
   * @param {Omit<import('./aggregator').AggregatorOptions, 'onRetired'>} options
   * @param {() => void} onReopened called when another spool has been tried
   */
  constructor(options, onReopened) {
    this.#options = options;
    this.#onReopened = onReopened;
  }

  /** The spool; undefined if no directory can be written. */
  get spool() {
    return this.#spool;
  }

  /**
   * @param {string} [adopt] directory of an earlier thread
   * @returns {Promise<void>}
   * @throws {NodeJS.ErrnoException} if the directory of an earlier thread may be continued later
   */
  async open(adopt) {
    const { directory, fallbacks, lock, onDirectory, inMemory } = this.#options;
    if (inMemory) return;
    try {
      const onLost = (/** @type {string} */ reason) => this.lose(reason);
      this.#spool = await Spool.open({ directory, fallbacks, adopt, lock, onLost });
      onDirectory(this.#spool.directory);
    } catch (error) {
      if (adopt !== undefined && isTransient(error)) throw error;
      debug('snapshots come over IPC: %s', error);
      this.#spool = undefined;
      onDirectory('');
      if (this.#isClosed) return;
      this.#timer = unref(setTimeout(() => this.#reopen(), PAUSE_MILLISECONDS));
    }
  }

  /**
   * Replaces the directory. Workers can write again whatever was in it.
   *
   * @param {string} reason
   * @returns {Promise<void>}
   */
  lose(reason) {
    debug('the snapshot directory is lost: %s', reason);
    // After close(), the directory may belong to the next thread.
    if (this.#isClosed) return this.#replaced;
    const lost = this.#spool;
    this.#spool = undefined;
    this.#replaced = this.#replaced.then(async () => {
      await lost?.close({ remove: false });
      await this.#reopen();
    });
    return this.#replaced;
  }

  async #reopen() {
    if (this.#isClosed || this.#spool !== undefined) return;
    clearTimeout(this.#timer);
    await this.open();
    this.#onReopened();
  }

  /** @param {boolean} remove whether to remove the directory */
  async close(remove) {
    await this.#replaced;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#spool?.close({ remove });
  }
}

module.exports = { CurrentSpool };
