'use strict';

// Runs in the aggregator thread, or on the primary's event loop if there is no thread; the primary's exit
// handler uses removeSync() only. The directory of snapshot files: creates, locks and removes it, reads and
// writes its files. File operations are synchronous and short, because a saturated libuv pool would delay
// asynchronous ones, and the renewal of the lock, by seconds. Only the search for abandoned directories is
// asynchronous: nothing waits for it.

const fs = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const { isSpoolDirectoryName, partsOf } = require('./file-names');
const { LOCK, sweep, removeDirectory } = require('./sweep');
const { placesFor, inFirstPlace, makeDirectory } = require('./places');
const { hold } = require('./lock');
const {
  isOurs,
  readRegularFile,
  createInSteps,
  removeEntry,
  touch,
  unlessMissing,
  ifReadable,
  isTransient,
  systemError,
  codeOf,
} = require('./safe-files');
const { unref } = require('../event-loop/timers');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

const HOUR_MILLISECONDS = 3_600_000;

// How many files of a worker are read: only the last ones, because columns replace earlier ones. A worker
// that is not compromised leaves two or three.
const MAX_FILES_OF_WORKER = 8;

/**
 * @typedef {object} OpenOptions
 * @property {string} [directory] existing directory in which to create the spool; tried first
 * @property {string} [adopt] the spool directory of an earlier thread of this process, which has ended. It is
 *   continued with all its files. If that fails, a new one is created
 * @property {(reason: string) => void} [onLost] called at most once, and never after `close`: the directory
 *   is gone. Open another spool and close this one
 * @property {boolean} [lock] lock the directory with proper-lockfile (default: only off the main thread,
 *   because on it proper-lockfile hooks the application's signals); else a timer renews a lock of its own
 * @property {string[]} [fallbacks] directories to try after `directory`
 * @property {number} [update] milliseconds between two renewals of the lock (at least 1000 with `lock`)
 */

/** @typedef {Required<Pick<OpenOptions, 'onLost' | 'lock' | 'update'>>} Terms */

/**
 * A directory for the snapshot files of one primary: mode 0700, with a lock in it, removed on `close`. Its
 * timers do not keep the process alive.
 */
class Spool {
  #device;
  #inode;
  #onLost;
  /** @type {(() => void) | undefined} */
  #release;
  /** @type {NodeJS.Timeout | undefined} */
  #hourly = undefined;

  /**
   * Use `Spool.open`.
   *
   * @param {string} directory absolute
   * @param {Terms} terms
   */
  constructor(directory, terms) {
    const { dev, ino } = fs.lstatSync(directory);
    this.directory = directory;
    this.#device = dev;
    this.#inode = ino;
    this.#onLost = terms.onLost;
    this.#release = hold(this, terms, reason => this.#lose(reason));
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
    onLost = () => {},
    lock = !isMainThread,
    fallbacks,
    update = 10_000,
  } = {}) {
    const places = placesFor(directory, fallbacks);
    const terms = { onLost, lock, update };
    const spool = Spool.#adopt(adopt, terms) ?? inFirstPlace(places, place => Spool.#createIn(place, terms));
    spool.#keepOrder(places);
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
      if (isOwnSpool(directory)) removeDirectory(directory);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') debug('cannot remove %s: %s', directory, textOf(error));
    }
  }

  /**
   * @param {string | undefined} directory
   * @param {Terms} terms
   * @returns {Spool | undefined}
   */
  static #adopt(directory, terms) {
    if (directory === undefined) return undefined;
    try {
      if (isOwnSpool(directory)) return new Spool(directory, terms);
      debug('%s is not a spool of this user', directory);
    } catch (error) {
      if (isTransient(error)) throw error;
      debug('cannot adopt %s: %s', directory, textOf(error));
    }
    return undefined;
  }

  /**
   * @param {string} place
   * @param {Terms} terms
   * @returns {Spool}
   */
  static #createIn(place, terms) {
    const directory = makeDirectory(place, terms.lock);
    try {
      return new Spool(directory, terms);
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
    if (remove && this.isPresent()) Spool.removeSync(this.directory);
  }

  /**
   * Removes what dead primaries have left, now and every hour, because the files of a primary that was killed
   * just before are still too new now. Also renews the times of the files, because some systems delete files
   * in temporary directories that have not changed for days.
   *
   * @param {string[]} places
   */
  #keepOrder(places) {
    void sweep(places, this.directory);
    const renew = () => {
      for (const name of ifReadable(() => this.#names()) ?? []) if (name !== LOCK) this.touch(name);
      void sweep(places, this.directory);
    };
    this.#hourly = unref(setInterval(renew, HOUR_MILLISECONDS));
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
    this.#onLost(reason);
  }

  /**
   * Whether the directory still exists, is the one that was created, and belongs to this user.
   *
   * @returns {boolean} true if that cannot be found out at the moment
   */
  isPresent() {
    return ifReadable(() => this.#isThere()) ?? true;
  }

  /**
   * @returns {boolean}
   * @throws {NodeJS.ErrnoException} if that cannot be found out at the moment: the disk has an error, for
   *   example
   */
  #isThere() {
    try {
      const stat = fs.lstatSync(this.directory);
      return isOurs(stat) && stat.dev === this.#device && stat.ino === this.#inode;
    } catch (error) {
      if (isTransient(error)) throw error;
      return false;
    }
  }

  /**
   * @returns {string[]} empty if the directory is gone
   * @throws {NodeJS.ErrnoException} if it cannot be read at the moment
   */
  #names() {
    return this.#isThere() ? (unlessMissing(() => fs.readdirSync(this.directory)) ?? []) : [];
  }

  /** @returns {number[]} ids of the workers that have files here */
  workers() {
    return [...new Set(this.#names().flatMap(name => partsOf(name)?.workerId ?? []))];
  }

  /**
   * Names of the last columns that a worker has written and that still exist, those that nobody asked for
   * last. Empty if the directory is gone.
   *
   * @param {number} workerId
   * @returns {string[]}
   */
  columnsOfWorker(workerId) {
    return this.#names()
      .flatMap(name => {
        const parts = partsOf(name);
        return parts?.workerId === workerId && parts.requestId >= 0 ? { name, ...parts } : [];
      })
      .sort((a, b) => (a.requestId || Infinity) - (b.requestId || Infinity) || 0)
      .slice(-MAX_FILES_OF_WORKER)
      .map(({ name }) => name);
  }

  /**
   * A file's bytes, or a part of them, from the first byte of an ArrayBuffer of their own. Typed arrays of
   * 8-byte elements can view them.
   *
   * @param {string} name bare file name
   * @param {import('./safe-files').Part} [part]
   * @returns {Buffer}
   * @throws {NodeJS.ErrnoException} ENOENT, ELOOP for a symbolic link, EINVAL for anything else that is not a
   *   regular file, EFBIG if it is too long
   */
  read(name, part) {
    return readRegularFile(this.#pathOf(name), part);
  }

  /**
   * @param {string} name bare file name
   * @returns {Buffer | undefined} as `read`; undefined if there is no such file
   */
  readIfPresent(name) {
    return unlessMissing(() => this.read(name));
  }

  /**
   * Removes a file, or an empty directory of that name. Never throws: what cannot be removed stays.
   *
   * @param {string} name bare file name
   */
  discard(name) {
    try {
      removeEntry(this.#pathOf(name));
    } catch (error) {
      debug('%s cannot be removed: %s', name, textOf(error));
    }
  }

  /**
   * Removes all files of a worker, its logs included. Never throws: what stays goes with the directory.
   *
   * @param {number} workerId
   */
  unlinkAllOf(workerId) {
    const names = ifReadable(() => this.#names()) ?? [];
    for (const name of names) if (partsOf(name)?.workerId === workerId) this.discard(name);
  }

  /**
   * Creates a file, in steps.
   *
   * @param {string} name bare file name
   * @param {Uint8Array} bytes
   * @returns {Generator<void, void>}
   * @throws {NodeJS.ErrnoException} nothing is left of the file then
   */
  *create(name, bytes) {
    yield* createInSteps(this.#pathOf(name), bytes);
  }

  /**
   * Writes or replaces a file. A reader (a later thread) finds either the old content or the new one. The
   * file is not synced to disk: it must outlive a thread, not the machine.
   *
   * @param {string} name bare file name
   * @param {Uint8Array} bytes
   * @throws {NodeJS.ErrnoException} the old content is unchanged then
   */
  writeAtomically(name, bytes) {
    const file = this.#pathOf(name);
    const unfinished = `${file}.tmp`;
    // An earlier thread may have left it incomplete.
    unlessMissing(() => fs.unlinkSync(unfinished));
    try {
      fs.writeFileSync(unfinished, bytes, { flag: 'wx', mode: 0o600 });
      fs.renameSync(unfinished, file);
    } catch (error) {
      ifReadable(() => fs.unlinkSync(unfinished));
      throw error;
    }
  }

  /**
   * Renews the time of a file. Never throws.
   *
   * @param {string} name bare file name
   */
  touch(name) {
    ifReadable(() => touch(this.#pathOf(name)));
  }

  /**
   * @param {string} name
   * @returns {string}
   */
  #pathOf(name) {
    if (name === '' || name === '.' || name === '..' || path.basename(name) !== name) {
      throw systemError('EINVAL', `not a bare file name: '${name}'`);
    }
    // A link may have replaced it, and lead to a directory of somebody else.
    if (!this.#isThere()) throw systemError('ENOENT', `the snapshot directory is gone, '${this.directory}'`);
    return path.join(this.directory, name);
  }
}

/**
 * @param {string} directory
 * @returns {boolean} whether it is a directory of this user with the name of a spool
 */
function isOwnSpool(directory) {
  return isSpoolDirectoryName(path.basename(directory)) && isOurs(fs.lstatSync(directory));
}

module.exports = { Spool };
