'use strict';

// Runs in every process of a group, on its event loop. The group's directory, mode 0700, below the temporary
// directory. It contains a socket `m<id>` per process, and a directory per generation: the process that
// creates `g<n>` leads from then on. It creates it by renaming a directory that has a file in it, which fails
// if `g<n>` exists. If nobody listens on a socket, its process is dead: this works across pid namespaces, and
// for processes that are stopped. Only names are read, never the content of files.

const fs = require('node:fs');
const path = require('node:path');
const { socketName, leaderName, leaderOf, idOfSocket } = require('./group-names');
const { isOurs, ifReadable, touch } = require('../../spool/safe-files');
const { isSpoolDirectoryName, partsOf } = require('../../spool/file-names');
const { removeDirectory } = require('../../spool/sweep');
const { connect } = require('../links/socket');
const { debug } = require('../../options/debug-log');

// At most 15 digits, which a number represents exactly.
const GENERATION = /^g([1-9][0-9]{0,14})$/;

/** @typedef {import('./group-names').LeaderRecord} LeaderRecord */

class GroupDirectory {
  /** @param {string} directory absolute */
  constructor(directory) {
    this.path = directory;
  }

  /**
   * Creates the directory, if it is missing.
   *
   * @throws {Error} if it is not a directory that belongs to this user and only this user can access
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
   * @param {number} id
   * @returns {string} where the process with this id listens
   */
  socketOf(id) {
    if (process.platform !== 'win32') return this.#fileOf(id);
    const { createHash } = require('node:crypto');
    const place = createHash('sha256').update(this.path).digest('hex').slice(0, 24);
    return `\\\\.\\pipe\\prom-client-group-${place}-${id}`;
  }

  /** @param {number} id */
  #fileOf(id) {
    return path.join(this.path, socketName(id));
  }

  /**
   * On Windows, a named pipe is not in the directory, so a file represents it there.
   *
   * @param {number} id
   */
  showPipe(id) {
    if (process.platform === 'win32') fs.writeFileSync(this.#fileOf(id), '', { mode: 0o600 });
  }

  /**
   * @param {number} id
   * @returns {boolean} whether the directory has the socket of this process
   */
  hasSocket(id) {
    return fs.existsSync(this.#fileOf(id));
  }

  /**
   * @returns {number[]} ids of the processes with a socket, some of which may be dead
   * @throws {NodeJS.ErrnoException} if they cannot be listed
   */
  members() {
    return fs.readdirSync(this.path).flatMap(name => idOfSocket(name) ?? []);
  }

  /**
   * @param {number} id
   * @returns {Promise<boolean>} whether the process with this id lives. A process that does not lead takes
   *   the connection for a notice that another process leads
   */
  async isAlive(id) {
    try {
      (await connect(this.socketOf(id))).destroy();
      return true;
    } catch (error) {
      return !isGone(error);
    }
  }

  /**
   * Never throws: on a disk that is read-only, the socket stays.
   *
   * @param {number} id of a dead process
   */
  removeSocket(id) {
    try {
      fs.rmSync(this.#fileOf(id), { force: true });
    } catch (error) {
      debug('the socket of process %d cannot be removed: %s', id, error);
    }
  }

  /**
   * @returns {number[]} newest first
   * @throws {NodeJS.ErrnoException} if they cannot be listed
   */
  generations() {
    return fs
      .readdirSync(this.path)
      .flatMap(name => GENERATION.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a);
  }

  /** @param {number} generation */
  placeOf(generation) {
    return path.join(this.path, `g${generation}`);
  }

  /**
   * @returns {{generation: number, leader: LeaderRecord | undefined}} who leads; generation 0 if nobody ever
   *   did, and no leader if it is not known
   * @throws {NodeJS.ErrnoException} if that cannot be read
   */
  newest() {
    const [generation = 0] = this.generations();
    return { generation, leader: this.#leaders(generation)[0] };
  }

  /** @param {number} generation */
  #leaders(generation) {
    const names = ifReadable(() => this.#namesIn(generation)) ?? [];
    return names.flatMap(name => leaderOf(name) ?? []);
  }

  /**
   * @param {number} generation
   * @returns {string[]} none if the place is a file, or a link that somebody else has made
   * @throws {NodeJS.ErrnoException} if they cannot be listed
   */
  #namesIn(generation) {
    const place = this.placeOf(generation);
    return isOurs(fs.lstatSync(place)) ? fs.readdirSync(place) : [];
  }

  /**
   * @param {number} generation
   * @param {number} id of this process
   * @returns {boolean} whether this process leads: its directory exists, no newer generation has replaced it,
   *   and it was not removed and created again by another process
   */
  isLedBy(generation, id) {
    return fs.existsSync(path.join(this.placeOf(generation), ownName(id)));
  }

  /** @returns {import('../wire/messages').GroupFacts} */
  facts() {
    const { generation, leader } = ifReadable(() => this.newest()) ?? { generation: 0, leader: undefined };
    const members = ifReadable(() => this.members().length) ?? 0;
    return { directory: this.path, generation, members, leader };
  }

  /** @returns {string | undefined} the directory of snapshot files, if it is in this directory */
  spool() {
    return ifReadable(() => this.generations().flatMap(number => this.#spoolsOf(number)))?.[0];
  }

  /**
   * @param {number} generation
   * @returns {string[]} paths of directories of snapshot files
   * @throws {NodeJS.ErrnoException} if they cannot be listed. An error is not taken for an empty directory:
   *   without its files, all counters would fall
   */
  #spoolsOf(generation) {
    const names = this.#namesIn(generation).filter(isSpoolDirectoryName);
    const spools = names.map(name => path.join(this.placeOf(generation), name));
    return spools.filter(spool => isOurs(fs.lstatSync(spool)));
  }

  /**
   * @param {number} before generation
   * @returns {number[]} ids of all processes that have snapshot files there, including dead ones that are not
   *   part of the retired totals yet
   * @throws {NodeJS.ErrnoException} if they cannot be listed
   */
  idsBefore(before) {
    const spools = this.#before(before).flatMap(generation => this.#spoolsOf(generation));
    const names = spools.flatMap(spool => fs.readdirSync(spool));
    return [...new Set(names.flatMap(name => partsOf(name)?.workerId ?? []))];
  }

  /** @param {number} generation */
  #before(generation) {
    return this.generations().filter(number => number < generation);
  }

  /**
   * Tries to become the leader.
   *
   * @param {number} generation
   * @param {number} id of this process
   * @returns {boolean} false if another process was first
   */
  claim(generation, id) {
    const candidate = path.join(this.path, `candidate-${id}`);
    // An earlier try may have left it.
    fs.rmSync(candidate, { recursive: true, force: true });
    try {
      fs.mkdirSync(candidate, { mode: 0o700 });
      fs.writeFileSync(path.join(candidate, ownName(id)), '', { mode: 0o600 });
      // It replaces nothing but an empty directory.
      fs.renameSync(candidate, this.placeOf(generation));
    } catch (error) {
      fs.rmSync(candidate, { recursive: true, force: true });
      const { code } = /** @type {any} */ (error);
      if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'EPERM') return false;
      throw error;
    }
    // This process may have been stopped since it has read the newest generation.
    if (this.generations()[0] === generation) return true;
    this.#remove(generation);
    return false;
  }

  /**
   * Moves the snapshot files of earlier generations to this one. From then on, an earlier leader that was
   * stopped and continues finds its directory missing, whatever it is about to write.
   *
   * @param {number} generation
   * @param {boolean} isContinued false if all their members are dead: the files are removed
   * @returns {string | undefined} the directory of snapshot files that was moved
   * @throws {Error} if it cannot be moved. This process has then given up the generation: the next attempt,
   *   or another process, finds the files where they were
   */
  succeed(generation, isContinued) {
    const earlier = this.#before(generation);
    let moved;
    try {
      // Only one of several processes succeeds.
      const [spool] = isContinued ? earlier.flatMap(number => this.#spoolsOf(number)) : [];
      if (spool !== undefined) {
        moved = path.join(this.placeOf(generation), path.basename(spool));
        fs.renameSync(spool, moved);
      }
    } catch (error) {
      this.#remove(generation);
      throw error;
    }
    for (const number of earlier) this.#remove(number);
    return moved;
  }

  /**
   * Removes a generation, unless it contains files of another process.
   *
   * @param {number} generation
   */
  #remove(generation) {
    const place = this.placeOf(generation);
    try {
      for (const spool of this.#spoolsOf(generation)) removeDirectory(spool);
      for (const leader of this.#leaders(generation)) fs.rmSync(path.join(place, leaderName(leader)));
      fs.rmdirSync(place);
    } catch (error) {
      debug('%s cannot be removed: %s', place, error);
    }
  }

  /**
   * Some systems delete files in temporary directories that have not changed for days.
   *
   * @param {number} id of this process
   * @param {number} [generation] if this process leads
   */
  freshen(id, generation) {
    touch(this.#fileOf(id));
    if (generation === undefined) return;
    const place = this.placeOf(generation);
    for (const file of [place, path.join(place, ownName(id))]) touch(file);
  }

  /**
   * Removes the sockets of dead processes, and notifies the living ones that another process leads. A process
   * that has created its socket but does not listen yet is taken for dead; it creates the socket again (see
   * Election).
   *
   * @param {number} except id of this process
   */
  async notifyAll(except) {
    for (const id of this.members()) if (id !== except && !(await this.isAlive(id))) this.removeSocket(id);
  }

  /**
   * Removes the socket of a process that ends and, if there is no other one, the directory.
   *
   * @param {number} id
   */
  leave(id) {
    try {
      this.removeSocket(id);
      if (this.members().length > 0) return;
      this.succeed(Infinity, false);
      fs.rmdirSync(this.path);
    } catch (error) {
      debug('%s stays: %s', this.path, error);
    }
  }
}

/**
 * @param {number} id of this process
 * @returns {string} name of the file that says that it leads
 */
function ownName(id) {
  return leaderName({ id, pid: process.pid });
}

/**
 * @param {unknown} error of a connection to a socket
 * @returns {boolean} whether nobody listens there. Other errors, such as EMFILE, prove nothing
 */
function isGone(error) {
  const { code } = /** @type {any} */ (error);
  return code === 'ECONNREFUSED' || code === 'ENOENT';
}

module.exports = { GroupDirectory, isGone };
