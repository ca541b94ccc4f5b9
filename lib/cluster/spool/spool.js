'use strict';

// Runs in the aggregator thread, or on the primary's event loop if there is no thread; the primary's exit
// handler uses removeSync() only. The directory of snapshot files: creates, locks and removes it. File
// operations are synchronous and short, because a saturated libuv pool would delay asynchronous ones, and the
// renewal of the lock, by seconds. Only the search for abandoned directories, which nothing waits for, is
// asynchronous.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { debuglog } = require('node:util');
const { isMainThread } = require('node:worker_threads');

const { SPOOL_PREFIX, spoolName, workerIdOfFile, isExitFile, isRetainedFile } = require('../wire/file-names');
const { OWNER_FILE, readOwner, ownerRecord, isThisProcess } = require('./owner');
const { LOCK, sweep, removeDirectory } = require('./sweep');
const {
  isOurs,
  readRegularFile,
  writeFile,
  appendFile,
  removeEntry,
  touch,
  unlessMissing,
  ifReadable,
  invalid,
  codeOf,
  messageOf,
} = require('./safe-files');

const debug = debuglog('prom-client-cluster');

const FRESHEN_MILLISECONDS = 3_600_000;
/**
 * @typedef {object} OpenOptions
 * @property {string} [directory] existing directory in which to create the spool; tried first
 * @property {string} [name] of the new directory, which must not exist
 * @property {string} [adopt] the spool directory of an earlier thread of this process, which has ended. It is
 *   continued with all its files. If that fails, a new one is created
 * @property {() => number} [now] milliseconds since the epoch, for the sweep
 * @property {(reason: string) => void} [onLost] called at most once, and never after `close`: the directory
 *   is gone or its lock is lost. Open another spool and close this one
 * @property {boolean} [lock] lock the directory with proper-lockfile (default: only off the main thread,
 *   because on it proper-lockfile hooks the application's signals); else a timer touches the owner file
 * @property {string[]} [fallbacks] directories to try after `directory`
 * @property {number} [stale] milliseconds after which a lock that was not renewed is stale (at least 2000)
 * @property {number} [update] milliseconds between two renewals (at least 1000 with `lock`)
 */

/**
 * @typedef {{directory: string, code: string | undefined, message: string}} Failure
 */

/**
 * A directory for the snapshot files of one primary: mode 0700, with a lock in it, removed on `close`. Its
 * timers do not keep the process alive.
 */
class Spool {
  #directory;
  #device;
  #inode;
  #onLost;
  /** @type {(() => void) | undefined} */
  #release;

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
    const stat = fs.lstatSync(directory);
    this.#directory = directory;
    this.#device = stat.dev;
    this.#inode = stat.ino;
    this.#onLost = onLost;
  }

  /**
   * Creates and locks a directory in the first place in which a directory can be created and a file written:
   * the `directory` option, `os.tmpdir()`, `/dev/shm`. Then removes, in the background, what dead primaries
   * have left there.
   *
   * @param {OpenOptions} [options]
   * @returns {Promise<Spool>}
   * @throws {Error & {failures: Failure[]}} if no place is usable
   */
  static async open({
    directory,
    name = spoolName(),
    adopt,
    now = Date.now,
    onLost = () => {},
    lock = !isMainThread,
    fallbacks = usualPlaces(),
    stale = 30_000,
    update = 10_000,
  } = {}) {
    const places = placesFor(directory, fallbacks);
    const terms = { now, onLost, lock, stale, update };
    const spool = Spool.#adopt(adopt, terms) ?? Spool.#create(places, name, terms);
    spool.swept = sweep(places, spool.directory, now);
    return spool;
  }

  /**
   * Removes a spool's directory with its lock and all its files, even if it is locked: for the 'exit' handler
   * of the primary's main thread, where nothing asynchronous runs any more. Only removes a directory of this
   * user with a spool's name, also if it was moved and replaced by a link to it. Never throws.
   *
   * @param {string} directory
   */
  static removeSync(directory) {
    try {
      if (!path.basename(directory).startsWith(SPOOL_PREFIX)) return;
      const isLink = fs.lstatSync(directory).isSymbolicLink();
      const place = isLink ? fs.realpathSync(directory) : directory;
      if (!isOurs(fs.lstatSync(place)) || (isLink && !isThisProcess(readOwner(place)))) return;
      removeDirectory(place);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') debug('cannot remove %s: %s', directory, messageOf(error));
    }
  }

  /**
   * The same for a directory that a thread may just have created.
   *
   * @param {string} name
   * @param {string} [directory] as in `open`
   */
  static removeNamedSync(name, directory) {
    for (const place of placesFor(directory, usualPlaces())) Spool.removeSync(path.join(place, name));
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
      if (!spool.isPresent() || !path.basename(directory).startsWith(SPOOL_PREFIX)) {
        throw new Error('not a spool of this user');
      }
      if (!isThisProcess(readOwner(directory))) {
        throw new Error('not a spool of this process');
      }
      removeLock(directory);
      spool.#hold(terms);
      return spool;
    } catch (error) {
      debug('cannot adopt %s: %s', directory, messageOf(error));
      return undefined;
    }
  }

  /**
   * @param {string[]} places
   * @param {string} name
   * @param {Terms} terms
   * @returns {Spool}
   */
  static #create(places, name, terms) {
    const failures = [];
    for (const place of places) {
      try {
        return Spool.#createIn(place, name, terms);
      } catch (error) {
        debug('no spool in %s: %s', place, messageOf(error));
        failures.push({ directory: place, code: codeOf(error), message: messageOf(error) });
      }
    }
    const tried = failures.map(failure => failure.message).join('; ');
    throw Object.assign(new Error(`No directory for snapshot files can be written: ${tried}`), { failures });
  }

  /**
   * @param {string} place
   * @param {string} name
   * @param {Terms} terms
   * @returns {Spool}
   */
  static #createIn(place, name, terms) {
    const directory = makeDirectory(place, name, terms.lock);
    try {
      const spool = new Spool(directory, terms.onLost);
      spool.writeAtomically(OWNER_FILE, [ownerRecord(terms.now())]);
      spool.#hold(terms);
      return spool;
    } catch (error) {
      Spool.removeSync(directory);
      throw error;
    }
  }

  /** Absolute path. */
  get directory() {
    return this.#directory;
  }

  /**
   * A file's bytes, from the first byte of an ArrayBuffer of their own. Typed arrays of 8-byte elements can
   * view them.
   *
   * @param {string} name bare file name
   * @param {number} [maxBytes] a longer file is not read; at most 1 GiB
   * @returns {Buffer}
   * @throws {NodeJS.ErrnoException} ENOENT, ELOOP for a symbolic link, EINVAL for anything else that is not a
   *   regular file, EFBIG if it is too long
   */
  read(name, maxBytes) {
    return readRegularFile(this.#pathOf(name), maxBytes);
  }

  /**
   * @param {string} name bare file name
   * @returns {Buffer | undefined} as `read`; undefined if there is no such file
   */
  readIfPresent(name) {
    return unlessMissing(() => this.read(name));
  }

  /**
   * Removes a file, if it exists. An empty directory of that name is removed, too.
   *
   * @param {string} name bare file name
   */
  unlink(name) {
    unlessMissing(() => removeEntry(this.#pathOf(name)));
  }

  /** @returns {number[]} ids of the workers that have files here */
  workers() {
    const ids = this.#names().map(name => workerIdOfFile(name) ?? NaN);
    return [...new Set(ids)].filter(id => !Number.isNaN(id));
  }

  /**
   * Names of the files that a worker has written and that still exist, oldest request first, its exit
   * snapshot last. Empty if the directory is gone.
   *
   * @param {number} workerId
   * @returns {string[]}
   */
  filesOfWorker(workerId) {
    return this.#names()
      .filter(name => workerIdOfFile(name) === workerId && !isRetainedFile(name))
      .map(name => ({ name, request: requestIdOfFile(name) }))
      .sort((a, b) => (a.request === b.request ? 0 : a.request - b.request))
      .map(({ name }) => name);
  }

  /**
   * Removes all files of a worker, retained ones included.
   *
   * @param {number} workerId
   */
  unlinkAllOf(workerId) {
    for (const name of this.#names()) {
      if (workerIdOfFile(name) !== workerId) continue;
      try {
        this.unlink(name);
      } catch (error) {
        // A directory with files, for example. It must not prevent the removal of other files or the retirement of other
        // workers.
        debug('%s cannot be removed: %s', name, messageOf(error));
      }
    }
  }

  /**
   * Renames a file. An existing file of the new name is removed first: ext4 takes a rename over a file for
   * the end of a careful update and writes the new file to the disk at once (auto_da_alloc). That takes
   * 0.4 ms for 80 kB and 1 ms for 800 kB, against 0.04 and 0.1 ms.
   *
   * @param {string} name bare file name
   * @param {string} newName bare file name
   */
  rename(name, newName) {
    this.unlink(newName);
    fs.renameSync(this.#pathOf(name), this.#pathOf(newName));
  }

  /**
   * @param {string} name bare file name
   * @param {Uint8Array} chunk
   */
  append(name, chunk) {
    appendFile(this.#pathOf(name), chunk);
  }

  /** @returns {string[]} empty if the directory is gone */
  #names() {
    return this.isPresent() ? (unlessMissing(() => fs.readdirSync(this.#directory)) ?? []) : [];
  }

  /**
   * Writes or replaces a file. A reader (a later thread) finds either the old content or the new one. The
   * file is not synced to disk: it has to outlive a thread, not the machine.
   *
   * @param {string} name bare file name
   * @param {Uint8Array[]} chunks
   * @throws {NodeJS.ErrnoException} the old content is unchanged then
   */
  writeAtomically(name, chunks) {
    const file = this.#pathOf(name);
    const unfinished = `${file}.tmp`;
    try {
      writeFile(unfinished, chunks);
      fs.renameSync(unfinished, file);
    } catch (error) {
      // Somebody may have created a directory under one of the names. If it is empty, the next try succeeds.
      ifReadable(() => removeEntry(unfinished));
      ifReadable(() => fs.rmdirSync(file));
      throw error;
    }
  }

  /**
   * Whether the directory still exists, is the one that was created, and belongs to this user.
   *
   * @returns {boolean}
   */
  isPresent() {
    return this.#isAt(this.#directory);
  }

  /** @param {string} place */
  #isAt(place) {
    try {
      const stat = fs.lstatSync(place);
      return isOurs(stat) && stat.dev === this.#device && stat.ino === this.#inode;
    } catch {
      return false;
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
    const place = ifReadable(() => fs.realpathSync(this.#directory));
    if (remove && place !== undefined && this.#isAt(place)) Spool.removeSync(this.#directory);
  }

  /** @param {Terms} terms */
  #hold({ lock, stale, update }) {
    const release = lock ? this.#takeLock(stale, update) : this.#touchOwnerFile(update);
    // Some systems delete files in temporary directories that have not changed for days.
    const timer = setInterval(() => this.#freshen(), FRESHEN_MILLISECONDS);
    timer.unref();
    this.#release = () => {
      clearInterval(timer);
      release();
    };
  }

  #freshen() {
    for (const name of this.#names()) if (name !== LOCK) touch(this.#pathOf(name));
  }

  /**
   * The lock is in the directory, so it is moved and removed with it. `lockSync` renews the lock with
   * synchronous file operations.
   *
   * @param {number} stale
   * @param {number} update
   */
  #takeLock(stale, update) {
    // Loaded here, because loading it hooks signals and replaces functions of `process`, which is harmless in
    // a thread with its own `process`, and because most processes never need it.
    const { lockSync } = require('proper-lockfile');
    return lockSync(this.#directory, {
      lockfilePath: path.join(this.#directory, LOCK),
      realpath: false,
      stale,
      update,
      onCompromised: error => this.#lose(error.message),
    });
  }

  /**
   * Replaces the lock on a main thread: touches the owner file often enough that the directory never looks
   * abandoned.
   *
   * @param {number} update
   */
  #touchOwnerFile(update) {
    const timer = setInterval(() => {
      if (this.isPresent()) touch(this.#pathOf(OWNER_FILE));
      else this.#lose(`${this.#directory} is gone`);
    }, update);
    timer.unref();
    return () => clearInterval(timer);
  }

  #releaseLock() {
    const release = this.#release;
    this.#release = undefined;
    try {
      release?.();
    } catch (error) {
      debug('cannot release %s: %s', this.#directory, messageOf(error));
    }
  }

  /** @param {string} reason */
  #lose(reason) {
    debug('lost %s: %s', this.#directory, reason);
    this.#releaseLock();
    try {
      this.#onLost(reason);
    } catch (error) {
      debug('onLost threw: %s', messageOf(error)); // this runs in a timer of the lock, where it would be uncaught
    }
  }

  /**
   * @param {string} name
   * @returns {string}
   */
  #pathOf(name) {
    if (name === '' || name === '.' || name === '..' || path.basename(name) !== name) {
      throw invalid(`not a bare file name: '${name}'`);
    }
    // A link may have replaced it, and lead to a directory of somebody else.
    if (!this.isPresent()) throw missing(this.#directory);
    return path.join(this.#directory, name);
  }
}

/**
 * @param {string} directory
 * @returns {NodeJS.ErrnoException}
 */
function missing(directory) {
  return Object.assign(new Error(`ENOENT: the snapshot directory is gone, '${directory}'`), {
    code: 'ENOENT',
  });
}

/**
 * @param {string | undefined} directory tried first
 * @param {string[]} others
 * @returns {string[]} absolute paths
 */
function placesFor(directory, others) {
  return [...new Set([directory ?? [], others].flat().map(place => path.resolve(place)))];
}

/** @returns {string[]} */
function usualPlaces() {
  return fs.existsSync('/dev/shm') ? [os.tmpdir(), '/dev/shm'] : [os.tmpdir()];
}

/**
 * @param {string} place
 * @param {string} name
 * @param {boolean} inThread
 * @returns {string} absolute path of a new directory
 */
function makeDirectory(place, name, inThread) {
  // Loading `tmp` adds an 'exit' listener to `process`, which on a main thread is the application's.
  if (inThread) return require('tmp').dirSync({ tmpdir: place, name, mode: 0o700, keep: true }).name;
  const directory = path.join(fs.realpathSync(place), name);
  fs.mkdirSync(directory, { mode: 0o700 });
  return directory;
}

/** @param {string} directory */
function removeLock(directory) {
  unlessMissing(() => fs.rmdirSync(path.join(directory, LOCK)));
}

/**
 * @param {string} name of a worker's file
 * @returns {number} Infinity for its last snapshot
 */
function requestIdOfFile(name) {
  return isExitFile(name) ? Infinity : Number(name.slice(name.indexOf('-r') + 2, name.lastIndexOf('-')));
}

module.exports = { Spool };
