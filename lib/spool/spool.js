'use strict';

// Runs in the aggregator thread, or on the primary's event loop if there is no thread; the primary's exit
// handler uses removeSync() only. The directory of snapshot files: creates, locks and removes it. Only the
// search for abandoned directories, which nothing waits for, is asynchronous.

const fs = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const { isSpoolDirectoryName } = require('./file-names');
const { SpoolFiles } = require('./spool-files');
const { sweep, removeDirectory } = require('./sweep');
const { placesFor, inFirstPlace, makeDirectory } = require('./places');
const { hold } = require('./lock');
const { isOurs, ifReadable, isTransient, codeOf } = require('./safe-files');
const { unref } = require('../event-loop/timers');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

const HOUR_MILLISECONDS = 3_600_000;

/**
 * @typedef {object} OpenOptions
 * @property {string} [directory] existing directory in which to create the spool; tried first
 * @property {string} [adopt] the spool directory of an earlier thread of this process, which has ended. It is
 *   continued with all its files. If that fails, a new one is created
 * @property {() => number} [now] milliseconds since the epoch, for the sweep
 * @property {(reason: string) => void} [onLost] called at most once, and never after `close`: the directory
 *   is gone. Open another spool and close this one
 * @property {boolean} [lock] lock the directory with proper-lockfile (default: only off the main thread,
 *   because on it proper-lockfile hooks the application's signals); else a timer renews a lock of its own
 * @property {string[]} [fallbacks] directories to try after `directory`
 * @property {number} [stale] milliseconds after which a lock that was not renewed is stale (at least 2000)
 * @property {number} [update] milliseconds between two renewals (at least 1000 with `lock`)
 */

/**
 * A directory for the snapshot files of one primary: mode 0700, with a lock in it, removed on `close`. Its
 * timers do not keep the process alive.
 */
class Spool extends SpoolFiles {
  #onLost;
  /** @type {(() => void) | undefined} */
  #release;
  /** @type {NodeJS.Timeout | undefined} */
  #hourly = undefined;

  /**
   * Absolute paths of the directories of dead primaries that were removed in the background. Never rejects.
   *
   * @type {Promise<string[]>}
   */
  swept = Promise.resolve([]);

  /**
   * Use `Spool.open`.
   *
   * @param {string} directory absolute
   * @param {(reason: string) => void} onLost
   */
  constructor(directory, onLost) {
    super(directory);
    this.#onLost = onLost;
  }

  /**
   * Creates and locks a directory in the first place in which a directory can be created and a file written:
   * the `directory` option, `os.tmpdir()`, `/dev/shm`. Then removes, in the background, what dead primaries
   * have left there.
   *
   * @param {OpenOptions} [options]
   * @returns {Promise<Spool>}
   * @throws {Error} if no place is usable
   * @throws {NodeJS.ErrnoException} if `adopt` may be continued later
   */
  static async open({
    directory,
    adopt,
    now = Date.now,
    onLost = () => {},
    lock = !isMainThread,
    fallbacks,
    stale = 30_000,
    update = 10_000,
  } = {}) {
    const places = placesFor(directory, fallbacks);
    const terms = { now, onLost, lock, stale, update };
    const spool = Spool.#adopt(adopt, terms) ?? inFirstPlace(places, place => Spool.#createIn(place, terms));
    spool.#keepOrder(places, now);
    return spool;
  }

  /**
   * Removes a spool's directory with its lock and all its files, even if it is locked: for the 'exit' handler
   * of the primary's main thread, where nothing asynchronous runs any more. Only removes a directory of this
   * user with a spool's name. Never throws.
   *
   * @param {string} directory
   */
  static removeSync(directory) {
    try {
      const isSpool = isSpoolDirectoryName(path.basename(directory)) && isOurs(fs.lstatSync(directory));
      if (isSpool) removeDirectory(directory);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') debug('cannot remove %s: %s', directory, textOf(error));
    }
  }

  /**
   * @typedef {Required<Pick<OpenOptions, 'now' | 'onLost' | 'lock' | 'stale' | 'update'>>} Terms
   */

  /**
   * @param {string | undefined} directory
   * @param {Terms} terms
   * @returns {Spool | undefined}
   */
  static #adopt(directory, terms) {
    if (directory === undefined) return undefined;
    try {
      const spool = new Spool(directory, terms.onLost);
      if (!spool.isPresent() || !isSpoolDirectoryName(path.basename(directory))) {
        throw new Error('not a spool of this user');
      }
      spool.#hold(terms);
      return spool;
    } catch (error) {
      if (isTransient(error)) throw error;
      debug('cannot adopt %s: %s', directory, textOf(error));
      return undefined;
    }
  }

  /**
   * @param {string} place
   * @param {Terms} terms
   * @returns {Spool}
   */
  static #createIn(place, terms) {
    const directory = makeDirectory(place, terms.lock);
    try {
      const spool = new Spool(directory, terms.onLost);
      spool.#hold(terms);
      return spool;
    } catch (error) {
      Spool.removeSync(directory);
      throw error;
    }
  }

  /**
   * Releases the lock and removes the directory. May be called again. What cannot be removed is left to a
   * later sweep.
   *
   * @param {{remove?: boolean}} [options]
   * @returns {Promise<void>}
   */
  async close({ remove = true } = {}) {
    this.#releaseLock();
    if (remove && ifReadable(() => this.isAt(this.directory))) Spool.removeSync(this.directory);
  }

  /**
   * Removes what dead primaries have left, now and every hour, because the files of a primary that was killed
   * just before are still too new now. Also renews the times of the files, because some systems delete files
   * in temporary directories that have not changed for days.
   *
   * @param {string[]} places
   * @param {() => number} now
   */
  #keepOrder(places, now) {
    this.swept = sweep(places, this.directory, now);
    this.#hourly = setInterval(() => {
      this.freshen();
      void sweep(places, this.directory, now);
    }, HOUR_MILLISECONDS);
    unref(this.#hourly);
  }

  /** @param {Terms} terms */
  #hold(terms) {
    this.#release = hold(this, terms, reason => this.#lose(reason));
  }

  #releaseLock() {
    const release = this.#release;
    this.#release = undefined;
    clearInterval(this.#hourly);
    try {
      release?.();
    } catch (error) {
      debug('cannot release %s: %s', this.directory, textOf(error));
    }
  }

  /** @param {string} reason */
  #lose(reason) {
    debug('lost %s: %s', this.directory, reason);
    this.#releaseLock();
    try {
      this.#onLost(reason);
    } catch (error) {
      debug('onLost threw: %s', textOf(error)); // this runs in a timer of the lock, where it would be uncaught
    }
  }
}

module.exports = { Spool };
