'use strict';

// The primary's directory of snapshot files: who makes it, who holds it, who may take it away. Everything that has to
// be done before the next file can be read is synchronous and short: a saturated libuv pool would hold asynchronous
// fs up for seconds, and the lock with it. Only the sweep, which nobody waits for, is asynchronous.

const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { debuglog } = require('node:util');
const { isMainThread } = require('node:worker_threads');

const { EXIT_NAME, workerIdOfFile } = require('./protocol.js');

const debug = debuglog('prom-client-cluster');

const PREFIX = 'prom-client-cluster-';
const OWNER_FILE = 'owner.json';
const OWNER_FILE_VERSION = 1;
const LOCK = 'lock';
const SWEEP_AGE_MS = 10 * 60 * 1000;

// Neither flag exists on Windows. O_NONBLOCK is for a FIFO in the place of a file: opening one waits for its writer.
const OPEN_TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
const OPEN_TO_REPLACE =
  fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_TRUNC | (fs.constants.O_NOFOLLOW ?? 0);

/**
 * @typedef {object} OpenOptions
 * @property {string} [directory] existing directory to make the spool in, before any other
 * @property {string} [adopt] a spool directory whose holder, an earlier thread of this process, has ended: it is taken
 *   over with all its files. If that cannot be done, a new one is made as usual
 * @property {() => number} [now] milliseconds since the epoch; decides what is old enough to sweep
 * @property {(reason: string) => void} [onLost] called at most once, and never after `close`: the directory is gone or
 *   no longer ours to hold. Open another spool and close this one
 * @property {boolean} [lock] hold the directory with proper-lockfile (default: off the main thread only, because
 *   there it hooks the application's signals); otherwise by touching the owner file from a timer
 * @property {string[]} [fallbacks] directories to try after `directory`
 * @property {number} [stale] milliseconds after which a lock that was not renewed may be taken (at least 2000)
 * @property {number} [update] milliseconds between two renewals (at least 1000 with `lock`)
 */

/**
 * Who made a directory, as far as it can be known. A process is identified by its id *and* its start time within one
 * boot and one pid namespace; where /proc cannot say, the fields are missing.
 *
 * @typedef {object} Owner
 * @property {number} pid
 * @property {string} [startTime] clock ticks after boot
 * @property {string} [bootId]
 * @property {string} [pidNamespace]
 */

/**
 * @typedef {{directory: string, code: string | undefined, message: string}} Failure
 */

/**
 * A directory for the snapshot files of one primary: 0700, held by a lock inside it, removed on `close`. Runs inside
 * the aggregator thread, or on the main thread where there is no such thread. Nothing in here keeps a process alive.
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
   * Makes and holds a directory in the first place that lets a directory be made and a file be written: the
   * `directory` option, `os.tmpdir()`, `/dev/shm`. Then sweeps, in the background, what dead primaries left in them.
   *
   * @param {OpenOptions} [options]
   * @returns {Promise<Spool>}
   * @throws {Error & {failures: Failure[]}} when no place will do
   */
  static async open({
    directory,
    adopt,
    now = Date.now,
    onLost = () => {},
    lock = !isMainThread,
    fallbacks = usualPlaces(),
    stale = 30_000,
    update = 10_000,
  } = {}) {
    const places = [...new Set([directory ?? [], fallbacks].flat().map(place => path.resolve(place)))];
    const terms = { now, onLost, lock, stale, update };
    const spool = Spool.#adopt(adopt, terms) ?? Spool.#create(places, terms);
    spool.swept = sweep(places, spool.directory, now);
    return spool;
  }

  /**
   * Removes a spool's directory with everything in it, lock included, whoever holds it: for the 'exit' handler of the
   * primary's main thread, where nothing asynchronous runs any more. Touches nothing but a directory of this user
   * that is named like ours, and never throws.
   *
   * @param {string} directory
   */
  static removeSync(directory) {
    try {
      if (path.basename(directory).startsWith(PREFIX) && isOurs(fs.lstatSync(directory))) {
        removeDirectory(directory);
      }
    } catch (error) {
      debug('cannot remove %s: %s', directory, messageOf(error));
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
      if (!spool.isPresent() || !path.basename(directory).startsWith(PREFIX)) {
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
   * @param {Terms} terms
   * @returns {Spool}
   */
  static #create(places, terms) {
    const failures = [];
    for (const place of places) {
      try {
        return Spool.#createIn(place, terms);
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
   * @param {Terms} terms
   * @returns {Spool}
   */
  static #createIn(place, terms) {
    const directory = makeDirectory(place, terms.lock);
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
   * A file's bytes, in an ArrayBuffer of their own from its first byte on, so that typed arrays of 8-byte elements can
   * be laid over them.
   *
   * @param {string} name bare file name
   * @returns {Buffer}
   * @throws {NodeJS.ErrnoException} ENOENT, ELOOP for a symbolic link, EINVAL for anything else but a regular file
   */
  read(name) {
    return readRegularFile(this.#pathOf(name));
  }

  /**
   * @param {string} name bare file name
   * @returns {Buffer | undefined} as `read`; undefined if there is no such file
   */
  readIfPresent(name) {
    return unlessMissing(() => this.read(name));
  }

  /**
   * Removes a file; a missing one is fine.
   *
   * @param {string} name bare file name
   */
  unlink(name) {
    unlessMissing(() => fs.unlinkSync(this.#pathOf(name)));
  }

  /**
   * Names of the files that a worker has put here and nobody has unlinked yet, oldest request first, its last snapshot
   * at the end. Empty if the directory is gone.
   *
   * @param {number} workerId
   * @returns {string[]}
   */
  filesOfWorker(workerId) {
    const names = unlessMissing(() => fs.readdirSync(this.#directory)) ?? [];
    return names
      .filter(name => workerIdOfFile(name) === workerId)
      .map(name => ({ name, request: requestIdOfFile(name) }))
      .sort((a, b) => (a.request === b.request ? 0 : a.request - b.request))
      .map(({ name }) => name);
  }

  /**
   * Writes or replaces a file, so that a reader (a later thread) finds the old content or the new, never a part. It
   * is not synced to disk: it has to outlive a thread, not the machine.
   *
   * @param {string} name bare file name
   * @param {Uint8Array[]} chunks
   * @throws {NodeJS.ErrnoException} the old content stands
   */
  writeAtomically(name, chunks) {
    const file = this.#pathOf(name);
    const unfinished = `${file}.tmp`;
    try {
      writeFile(unfinished, chunks);
      fs.renameSync(unfinished, file);
    } catch (error) {
      fs.rmSync(unfinished, { force: true });
      throw error;
    }
  }

  /**
   * Whether the directory is still there, still the one that was made, and still this user's.
   *
   * @returns {boolean}
   */
  isPresent() {
    try {
      const stat = fs.lstatSync(this.#directory);
      return isOurs(stat) && stat.dev === this.#device && stat.ino === this.#inode;
    } catch {
      return false;
    }
  }

  /**
   * Lets go of the directory and removes it. May be called again; what cannot be removed is left to a later sweep.
   *
   * @param {{remove?: boolean}} [options]
   * @returns {Promise<void>}
   */
  async close({ remove = true } = {}) {
    this.#letGo();
    if (remove && this.isPresent()) Spool.removeSync(this.#directory);
  }

  /** @param {Terms} terms */
  #hold({ lock, stale, update }) {
    this.#release = lock ? this.#takeLock(stale, update) : this.#keepMark(update);
  }

  /**
   * The lock lies inside the directory, so that it goes where the directory goes. Taken with `lockSync`, it is also
   * renewed with synchronous fs.
   *
   * @param {number} stale
   * @param {number} update
   */
  #takeLock(stale, update) {
    // Loaded here, because loading it hooks signals and replaces functions of `process` (harmless in a thread, which
    // has a `process` of its own), and because most processes never need it.
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
   * What stands for the lock on a main thread: an owner file that never gets old.
   *
   * @param {number} update
   */
  #keepMark(update) {
    const timer = setInterval(() => {
      if (this.isPresent()) touch(this.#pathOf(OWNER_FILE));
      else this.#lose(`${this.#directory} is gone`);
    }, update);
    timer.unref();
    return () => clearInterval(timer);
  }

  #letGo() {
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
    this.#letGo();
    try {
      this.#onLost(reason);
    } catch (error) {
      debug('onLost threw: %s', messageOf(error)); // this runs in a timer of the lock, where nobody could catch it
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
    return path.join(this.#directory, name);
  }
}

/** @returns {string[]} */
function usualPlaces() {
  return fs.existsSync('/dev/shm') ? [os.tmpdir(), '/dev/shm'] : [os.tmpdir()];
}

/**
 * @param {string} place
 * @param {boolean} inThread
 * @returns {string} absolute path of a new directory
 */
function makeDirectory(place, inThread) {
  // `tmp` leaves an 'exit' listener on the process that loads it, which on a main thread is the application's.
  if (!inThread) return fs.mkdtempSync(path.join(fs.realpathSync(place), PREFIX));
  return require('tmp').dirSync({ tmpdir: place, prefix: PREFIX.slice(0, -1), mode: 0o700, keep: true }).name;
}

/**
 * Renames before removing: nobody can put another file in under the name they know, and of two that remove the same
 * directory only one gets it. The new name keeps the prefix, so that a later sweep finds what was left half done.
 *
 * @param {string} directory
 * @returns {string}
 */
function setAside(directory) {
  const aside = path.join(path.dirname(directory), `${PREFIX}removed-${randomBytes(12).toString('hex')}`);
  fs.renameSync(directory, aside);
  return aside;
}

/** @param {string} directory */
function removeDirectory(directory) {
  fs.rmSync(setAside(directory), { recursive: true, force: true });
}

/** @param {string} directory */
function removeLock(directory) {
  unlessMissing(() => fs.rmdirSync(path.join(directory, LOCK)));
}

/**
 * Removes what primaries left that were killed before they could: directories of this user named like ours, in which
 * nothing has changed for ten minutes (a lock or mark that is kept fresh included), and whose owner is not alive.
 *
 * @param {string[]} places
 * @param {string} except our own directory
 * @param {() => number} now
 * @returns {Promise<string[]>} absolute paths of those removed
 */
async function sweep(places, except, now) {
  const removed = [];
  for (const directory of await spoolsIn(places)) {
    try {
      if (directory === except || !(await isAbandoned(directory, now() - SWEEP_AGE_MS))) continue;
      await fs.promises.rm(setAside(directory), { recursive: true, force: true });
      removed.push(directory);
    } catch (error) {
      debug('cannot sweep %s: %s', directory, messageOf(error));
    }
  }
  return removed;
}

/**
 * @param {string[]} places
 * @returns {Promise<string[]>}
 */
async function spoolsIn(places) {
  const found = new Set();
  for (const place of places) {
    try {
      const parent = await fs.promises.realpath(place);
      for (const name of await fs.promises.readdir(parent)) {
        if (name.startsWith(PREFIX)) found.add(path.join(parent, name));
      }
    } catch (error) {
      debug('cannot sweep in %s: %s', place, messageOf(error));
    }
  }
  return [...found];
}

/**
 * @param {string} directory
 * @param {number} since milliseconds since the epoch
 * @returns {Promise<boolean>}
 */
async function isAbandoned(directory, since) {
  if (!isOurs(await fs.promises.lstat(directory))) return false;
  if (await hasChanged(directory, since)) return false;
  return !isKnownToLive(readOwner(directory));
}

/**
 * Whether a file, or anything below a directory, was written at or after a time. Does not follow links.
 *
 * @param {string} file
 * @param {number} since
 * @returns {Promise<boolean>}
 */
async function hasChanged(file, since) {
  const stat = await fs.promises.lstat(file);
  if (stat.mtimeMs >= since) return true;
  if (!stat.isDirectory()) return false;
  for (const name of await fs.promises.readdir(file)) {
    if (await hasChanged(path.join(file, name), since)) return true;
  }
  return false;
}

/**
 * @param {string} directory
 * @returns {Owner | undefined}
 */
function readOwner(directory) {
  return parseOwner(ifReadable(() => readRegularFile(path.join(directory, OWNER_FILE))));
}

/**
 * @param {Buffer | undefined} bytes
 * @returns {Owner | undefined} undefined if it is not what `ownerRecord` writes
 */
function parseOwner(bytes) {
  try {
    const owner = JSON.parse(String(bytes));
    return Number.isSafeInteger(owner?.pid) && owner.pid > 0 ? owner : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {number} startedAt milliseconds since the epoch
 * @returns {Buffer}
 */
function ownerRecord(startedAt) {
  const record = { version: OWNER_FILE_VERSION, ...thisProcess(), startedAt };
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

/** @returns {Owner} in a thread, that of the whole process */
function thisProcess() {
  return {
    pid: process.pid,
    startTime: processState(process.pid)?.startTime,
    bootId: ifReadable(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()),
    pidNamespace: ifReadable(() => fs.readlinkSync('/proc/self/ns/pid')),
  };
}

/**
 * @param {Owner | undefined} owner
 * @returns {boolean}
 */
function isThisProcess(owner) {
  const self = thisProcess();
  return (
    owner?.pid === self.pid &&
    owner.startTime === self.startTime &&
    owner.bootId === self.bootId &&
    owner.pidNamespace === self.pidNamespace
  );
}

/**
 * Whether the owner of a directory certainly runs. False says less: it is dead, or it cannot be told (a pid from
 * another pid namespace or another machine means nothing here), and then the age of its files has to do.
 *
 * @param {Owner | undefined} owner
 * @returns {boolean}
 */
function isKnownToLive(owner) {
  const self = thisProcess();
  if (owner === undefined || self.bootId === undefined || self.pidNamespace === undefined) return false;
  if (owner.bootId !== self.bootId || owner.pidNamespace !== self.pidNamespace) return false;
  if (!processExists(owner.pid)) return false;
  const state = processState(owner.pid);
  if (state === undefined) return true;
  if (state.isZombie) return false; // in a container whose first process reaps nobody, zombies stay for good
  return owner.startTime === undefined || owner.startTime === state.startTime; // else the pid was given away again
}

/**
 * @param {number} pid
 * @returns {boolean}
 */
function processExists(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

/**
 * From /proc/<pid>/stat: state is field 3 and start time field 22, counted after the command's name, which is in
 * parentheses and may contain anything. See proc_pid_stat(5).
 *
 * @param {number} pid
 * @returns {{isZombie: boolean, startTime: string} | undefined}
 */
function processState(pid) {
  const line = ifReadable(() => fs.readFileSync(`/proc/${pid}/stat`, 'latin1'));
  if (line === undefined) return undefined;
  const fromThird = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return { isZombie: fromThird[0] === 'Z' || fromThird[0] === 'X', startTime: fromThird[19] };
}

/**
 * A real directory of this user. Where there are no user ids (Windows), any directory.
 *
 * @param {fs.Stats} stat from lstat
 * @returns {boolean}
 */
function isOurs(stat) {
  const user = process.geteuid?.();
  return stat.isDirectory() && (user === undefined || stat.uid === user);
}

/**
 * @param {string} name of a worker's file
 * @returns {number} Infinity for its last snapshot
 */
function requestIdOfFile(name) {
  return EXIT_NAME.test(name) ? Infinity : Number(name.slice(name.indexOf('-r') + 2, name.lastIndexOf('-')));
}

/**
 * @param {string} file
 * @returns {Buffer}
 */
function readRegularFile(file) {
  const descriptor = fs.openSync(file, OPEN_TO_READ);
  try {
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) throw invalid(`not a regular file, read '${file}'`);
    return readFully(descriptor, stat.size);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * @param {number} descriptor
 * @param {number} size
 * @returns {Buffer} shorter if the file was
 */
function readFully(descriptor, size) {
  const bytes = Buffer.allocUnsafeSlow(size);
  let end = 0;
  while (end < size) {
    const count = fs.readSync(descriptor, bytes, end, size - end, null);
    if (count === 0) return bytes.subarray(0, end);
    end += count;
  }
  return bytes;
}

/**
 * @param {string} file
 * @param {Uint8Array[]} chunks
 */
function writeFile(file, chunks) {
  const descriptor = fs.openSync(file, OPEN_TO_REPLACE, 0o600);
  try {
    for (const chunk of chunks) {
      let end = 0;
      while (end < chunk.length) end += fs.writeSync(descriptor, chunk, end);
    }
  } finally {
    fs.closeSync(descriptor);
  }
}

/** @param {string} file */
function touch(file) {
  try {
    const time = new Date();
    fs.utimesSync(file, time, time);
  } catch (error) {
    debug('cannot touch %s: %s', file, messageOf(error));
  }
}

/**
 * @template T
 * @param {() => T} action
 * @returns {T | undefined} undefined if the file it is about does not exist
 */
function unlessMissing(action) {
  try {
    return action();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * @template T
 * @param {() => T} action
 * @returns {T | undefined}
 */
function ifReadable(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/**
 * @param {string} message
 * @returns {NodeJS.ErrnoException}
 */
function invalid(message) {
  return Object.assign(new Error(`EINVAL: ${message}`), { code: 'EINVAL' });
}

/**
 * @param {unknown} error
 * @returns {string | undefined}
 */
function codeOf(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code;
}

/**
 * @param {unknown} error
 * @returns {string}
 */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

module.exports = { Spool };
