'use strict';

// Runs in every process of a group, on its event loop. The group's directory, mode 0700, below the temporary
// directory. It contains a socket per process, named by a random key, and a directory per generation: whoever
// creates `g<n>` aggregates from then on. It does so by renaming a directory that has a file in it, which
// fails if `g<n>` exists. A socket on which nobody listens is that of a dead process: that holds across pid
// namespaces, and for processes that are stopped.

const fs = require('node:fs');
const path = require('node:path');
const { prefixOfUser, isKey } = require('./group-names');
const { Generation, namesIn } = require('./generation');
const { isOurs, ifReadable, readRegularFile, writeFile, touch } = require('../../spool/safe-files');
const { workerIdOfFile } = require('../../spool/file-names');
const { takeOver, removeDirectory } = require('../../spool/take-over');
const { connect } = require('../links/socket');
const { debug } = require('../../options/debug-log');

// Of numbers that are exact.
const GENERATION = /^g([1-9][0-9]{0,14})$/;
const CANDIDATE = /^candidate-([0-9a-f]{10})$/;

// Directories of groups whose processes were all killed.
const SWEEP_MILLISECONDS = 600_000;

/** @typedef {import('./generation').MemberList} MemberList */

class GroupDirectory {
  /** @param {string} directory absolute */
  constructor(directory) {
    this.path = directory;
  }

  /**
   * Creates the directory, if it is missing.
   *
   * @throws {Error} if it is not a directory of this user and for this user only
   */
  open() {
    try {
      fs.mkdirSync(this.path, { mode: 0o700 });
    } catch (error) {
      if (/** @type {any} */ (error).code !== 'EEXIST') throw error;
    }
    const stat = fs.lstatSync(this.path);
    if (!isOurs(stat) || (process.platform !== 'win32' && (stat.mode & 0o077) !== 0)) {
      throw new Error(
        `The group's directory ${this.path} is refused: it must be a directory of this user with mode 0700`,
      );
    }
  }

  /**
   * @param {string} key
   * @returns {string} where the process with this key listens
   */
  socketOf(key) {
    if (process.platform !== 'win32') return path.join(this.path, key);
    const { createHash } = require('node:crypto');
    const place = createHash('sha256').update(this.path).digest('hex').slice(0, 24);
    return `\\\\.\\pipe\\prom-client-group-${place}-${key}`;
  }

  /**
   * @param {string} key
   * @returns {boolean} whether the directory has the socket of this key
   */
  hasSocket(key) {
    return fs.existsSync(path.join(this.path, key));
  }

  /**
   * On Windows, a named pipe is not in the directory. A file stands for it there.
   *
   * @param {string} key
   */
  showPipe(key) {
    if (process.platform === 'win32') writeFile(path.join(this.path, key), [this.#contentOf(key)]);
  }

  /** @param {string} key */
  #contentOf(key) {
    return Buffer.from(this.socketOf(key));
  }

  /**
   * @param {string} key
   * @returns {boolean | undefined} false for what a program has under such a name; undefined if that cannot
   *   be found out
   */
  #isSocket(key) {
    const file = path.join(this.path, key);
    const isFile = process.platform === 'win32';
    return ifReadable(() =>
      isFile ? readRegularFile(file).equals(this.#contentOf(key)) : fs.lstatSync(file).isSocket(),
    );
  }

  /**
   * Some systems delete files in temporary directories that have not changed for days.
   *
   * @param {string} key
   * @param {number} [generation] if this process aggregates
   */
  freshen(key, generation) {
    touch(path.join(this.path, key));
    if (generation !== undefined) this.generation(generation).freshen(key);
  }

  /**
   * @param {string} key
   * @returns {Promise<boolean>} whether the process with this key lives. A process that does not aggregate
   *   takes the connection for a notice that somebody else does
   */
  async isAlive(key) {
    if (key === '') return false;
    try {
      (await connect(this.socketOf(key))).destroy();
      return true;
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      // Others, as that too many files are open, prove nothing.
      return code !== 'ECONNREFUSED' && code !== 'ENOENT';
    }
  }

  /** @returns {string | undefined} the directory of snapshot files, if it is in this directory */
  spool() {
    return ifReadable(() => this.generations().flatMap(number => this.generation(number).spools()))?.[0];
  }

  /**
   * @param {string} spool
   * @returns {number[]} ids of all members that have files there: also those that have died, and are not part
   *   of the retired totals yet
   * @throws {NodeJS.ErrnoException} if that cannot be read
   */
  idsIn(spool) {
    return [...new Set(fs.readdirSync(spool).flatMap(name => workerIdOfFile(name) ?? []))];
  }

  /** @param {number} number */
  generation(number) {
    return new Generation(path.join(this.path, `g${number}`));
  }

  /** @returns {number[]} newest first */
  generations() {
    return fs
      .readdirSync(this.path)
      .flatMap(name => GENERATION.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a);
  }

  /** @returns {{generation: number, key: string} | undefined} who aggregates; undefined if nobody ever did */
  newest() {
    const [generation] = this.generations();
    if (generation === undefined) return undefined;
    return { generation, key: this.generation(generation).holder };
  }

  /**
   * Tries to become the one that aggregates.
   *
   * @param {number} generation
   * @param {string} key
   * @returns {boolean} false if another process was first
   */
  claim(generation, key) {
    const candidate = new Generation(path.join(this.path, `candidate-${key}`));
    // An earlier try may have left it.
    candidate.remove();
    fs.mkdirSync(candidate.place, { mode: 0o700 });
    try {
      candidate.writeHolder(key);
      // It replaces nothing but an empty directory.
      fs.renameSync(candidate.place, this.generation(generation).place);
    } catch (error) {
      candidate.remove();
      const { code } = /** @type {any} */ (error);
      if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'EPERM') return false;
      throw error;
    }
    // This process may have been stopped since it has read the newest generation.
    if (this.generations()[0] === generation) return true;
    this.generation(generation).remove();
    return false;
  }

  /**
   * @param {number} before generation
   * @returns {MemberList} of all earlier generations
   * @throws {NodeJS.ErrnoException} if one may be readable later
   */
  readMembers(before) {
    /** @type {MemberList} */
    const list = { next: 1, keys: new Map() };
    // Oldest first: one that was stopped while it took over may go on meanwhile, and move the list.
    for (const generation of this.generations().reverse()) {
      if (generation >= before) break;
      const { next, keys } = this.generation(generation).readMembers();
      list.next = Math.max(list.next, next);
      for (const [id, key] of keys) list.keys.set(id, key);
    }
    return list;
  }

  /**
   * Moves the snapshot files of earlier generations to this one, and the list of members. From then on, an
   * earlier holder that was stopped and wakes finds its directory missing, whatever it is about to write.
   *
   * @param {number} generation
   * @param {boolean} isContinued false if all their members are dead: the files are removed
   * @returns {string | undefined} the directory of snapshot files that was moved
   * @throws {Error} if it cannot be taken over. This process has given up the generation then: another try,
   *   or another process, finds the files where they were
   */
  succeed(generation, isContinued) {
    const to = this.generation(generation);
    const earlier = this.generations()
      .filter(number => number < generation)
      .map(number => this.generation(number));
    let moved;
    try {
      for (const from of isContinued ? earlier : []) moved ??= takeOverSpoolIn(from, to);
    } catch (error) {
      to.remove();
      throw error;
    }
    for (const from of earlier) {
      // This process may be stopped, or die, before it writes its own list.
      if (isContinued) from.passMembers(to);
      removeSpoolsIn(from);
      from.remove();
    }
    return moved;
  }

  /**
   * Removes what dead processes have left, and tells the living ones that somebody else aggregates.
   *
   * @param {string} except key of this process
   */
  async notifyAll(except) {
    for (const name of namesIn(this.path)) {
      const key = isKey(name) ? name : CANDIDATE.exec(name)?.[1];
      if (key === undefined || key === except || (await this.isAlive(key))) continue;
      if (name === key) this.removeSocket(key);
      else new Generation(path.join(this.path, name)).remove();
    }
  }

  /** Removes the directories of other groups of this user whose processes were all killed. */
  async sweep() {
    const parent = path.dirname(this.path);
    for (const name of namesIn(parent).filter(name => name.startsWith(prefixOfUser()))) {
      const other = new GroupDirectory(path.join(parent, name));
      if (other.path !== this.path) await other.#removeIfDead();
    }
  }

  async #removeIfDead() {
    try {
      const before = Date.now() - SWEEP_MILLISECONDS;
      const isOld = () => {
        const stat = fs.lstatSync(this.path);
        return isOurs(stat) && stat.mtimeMs < before;
      };
      if (!isOld()) return;
      const keys = namesIn(this.path).filter(isKey);
      for (const key of keys) if (await this.isAlive(key)) return;
      // No process has come meanwhile.
      if (!isOld()) return;
      for (const key of keys) this.removeSocket(key);
      this.leave('');
    } catch (error) {
      debug('%s is not removed: %s', this.path, error);
    }
  }

  /**
   * Never throws: on a disk that is read-only, the socket stays. So does anything else of that name.
   *
   * @param {string} key of a dead process; '' if it is not known
   */
  removeSocket(key) {
    try {
      if (key !== '' && this.#isSocket(key)) fs.rmSync(path.join(this.path, key), { force: true });
    } catch (error) {
      debug('the socket %s cannot be removed: %s', key, error);
    }
  }

  /**
   * @param {string} key
   * @returns {boolean} whether there are, or may be, sockets of other processes
   */
  hasOthersThan(key) {
    return namesIn(this.path).some(name => isKey(name) && name !== key && this.#isSocket(name) !== false);
  }

  /**
   * Removes the socket of this process and, if it was the last one, the directory.
   *
   * @param {string} key '' for none
   */
  leave(key) {
    try {
      this.removeSocket(key);
      if (this.hasOthersThan(key)) return;
      this.succeed(Infinity, false);
      fs.rmdirSync(this.path);
    } catch (error) {
      debug('%s stays: %s', this.path, error);
    }
  }
}

/**
 * @param {Generation} from
 * @param {Generation} to
 * @returns {string | undefined} the directory of snapshot files in `to`; undefined if there was none
 */
function takeOverSpoolIn(from, to) {
  for (const spool of from.spools()) {
    const moved = takeOver(spool, path.join(to.place, path.basename(spool)));
    if (moved !== undefined) return moved;
  }
  return undefined;
}

/** @param {Generation} generation */
function removeSpoolsIn(generation) {
  try {
    for (const spool of generation.spools()) if (isOurs(fs.lstatSync(spool))) removeDirectory(spool);
  } catch (error) {
    debug('directories in %s cannot be removed: %s', generation.place, error);
  }
}

module.exports = { GroupDirectory };
