'use strict';

// Runs in every process of a group, on its event loop. One generation of a group, in its directory `g<n>`:
// who aggregates, and the list of members. Whatever is not valid in its files is ignored.

const fs = require('node:fs');
const path = require('node:path');
const { isKey } = require('./group-names');
const {
  isOurs,
  ifReadable,
  ifReadableNow,
  readRegularFile,
  writeFile,
  touch,
} = require('../../spool/safe-files');
const { SPOOL_PREFIX, isSpoolDirectoryName } = require('../../spool/file-names');
const { debug } = require('../../options/debug-log');

const HOLDER = 'holder-';
const MEMBERS_FILE = 'members.json';
const MAX_FILE_BYTES = 2 ** 20;

/** @typedef {import('../wire/messages').GroupFacts} GroupFacts */
/** @typedef {{next: number, keys: Map<number, string>}} MemberList ids and keys; next: the next id */

class Generation {
  /** @param {string} place its directory */
  constructor(place) {
    this.place = place;
  }

  /**
   * Whether a holder has created it. A program may have a directory of such a name in the group's directory.
   * The names of the others are not enough to remove or move anything in it.
   *
   * @throws {Error} if that cannot be found out
   */
  get isOwn() {
    if (!isOurs(fs.lstatSync(this.place))) return false;
    return (
      this.#holderFiles.length > 0 ||
      this.#spoolsIn().some(spool => isSpoolDirectoryName(path.basename(spool)))
    );
  }

  /**
   * @returns {string[]} paths of directories of snapshot files
   * @throws {Error} if they cannot be listed. An error is not taken for an empty directory: without its
   *   files, all counters would fall
   */
  spools() {
    return this.isOwn ? this.#spoolsIn() : [];
  }

  #spoolsIn() {
    const names = fs.readdirSync(this.place).filter(name => name.startsWith(SPOOL_PREFIX));
    return names.map(name => path.join(this.place, name));
  }

  /** @param {string} key of this process, which aggregates */
  writeHolder(key) {
    try {
      this.#writePid(key);
    } catch (error) {
      // On a full disk the file is empty, but its name says who aggregates.
      if (!this.isHeldBy(key)) throw error;
      debug('the file of the holder in %s is incomplete: %s', this.place, error);
    }
  }

  /**
   * Writes the holder's file if it is incomplete. One that is missing stays so: the directory may be that of
   * another holder now.
   *
   * @param {string} key of this process, which aggregates
   */
  completeHolder(key) {
    if (this.isHeldBy(key) && this.#pidOf(key) === undefined) this.#writePid(key);
  }

  /** @returns {string} key of the process that aggregates; '' if it is not known */
  get holder() {
    const files = this.#holderFiles;
    return files.length === 1 ? files[0].slice(HOLDER.length) : '';
  }

  /**
   * @param {string} key
   * @returns {boolean} whether the process with this key aggregates: the directory exists, no newer one has
   *   replaced it, and nobody has made another one of the same name after somebody had removed it
   */
  isHeldBy(key) {
    return fs.existsSync(this.#fileOf(key));
  }

  /** @param {MemberList} list */
  writeMembers({ next, keys }) {
    const file = path.join(this.place, MEMBERS_FILE);
    writeJson(`${file}.tmp`, { next, members: [...keys] });
    fs.renameSync(`${file}.tmp`, file);
  }

  /**
   * @returns {MemberList} empty if there is none
   * @throws {NodeJS.ErrnoException} if it may be readable later. A holder without the list would give ids a
   *   second time, and take processes for dead that do not find it within a second
   */
  readMembers() {
    const file = path.join(this.place, MEMBERS_FILE);
    const { next, members } = ifReadableNow(() => this.isOwn && readJson(file)) || {};
    const valid = (Array.isArray(members) ? members : []).filter(
      member => Array.isArray(member) && Number.isSafeInteger(member[0]) && member[0] > 0 && isKey(member[1]),
    );
    return { next: Number.isSafeInteger(next) ? next : 1, keys: new Map(valid) };
  }

  /**
   * Leaves the list of members to the next generation, unless that has one. On a full disk, it could not be
   * written there.
   *
   * @param {Generation} next
   */
  passMembers(next) {
    const [from, to] = [this, next].map(({ place }) => path.join(place, MEMBERS_FILE));
    if (!fs.existsSync(to)) ifReadable(() => this.isOwn && fs.renameSync(from, to));
  }

  /** @returns {Pick<GroupFacts, 'members' | 'aggregator'>} as its holder has written */
  get facts() {
    const keys = ifReadable(() => this.readMembers().keys) ?? new Map();
    const key = this.holder;
    const pid = this.#pidOf(key);
    const id = [...keys].find(([, member]) => member === key)?.[0];
    const isKnown = id !== undefined && pid !== undefined;
    return { members: keys.size, aggregator: isKnown ? { pid, id } : undefined };
  }

  /** @param {string} key of this process, which aggregates */
  freshen(key) {
    for (const file of [this.place, this.#fileOf(key), path.join(this.place, MEMBERS_FILE)]) touch(file);
  }

  /** Removes it, unless there is anything else in it. The file that shows whose it is comes last. */
  remove() {
    try {
      const names = this.isOwn ? [MEMBERS_FILE, `${MEMBERS_FILE}.tmp`, ...this.#holderFiles] : [];
      for (const name of names) fs.rmSync(path.join(this.place, name), { force: true });
      fs.rmdirSync(this.place);
    } catch (error) {
      debug('%s cannot be removed: %s', this.place, error);
    }
  }

  /** @returns {string[]} names */
  get #holderFiles() {
    return namesIn(this.place).filter(name => name.startsWith(HOLDER) && isKey(name.slice(HOLDER.length)));
  }

  /** @param {string} key of the process that aggregates */
  #fileOf(key) {
    return path.join(this.place, HOLDER + key);
  }

  /** @param {string} key of this process */
  #writePid(key) {
    writeJson(this.#fileOf(key), { pid: process.pid });
  }

  /**
   * @param {string} key of the process that aggregates
   * @returns {number | undefined} undefined if it is not known
   */
  #pidOf(key) {
    const { pid } = ifReadable(() => readJson(this.#fileOf(key))) ?? {};
    return Number.isSafeInteger(pid) ? pid : undefined;
  }
}

/**
 * @param {string} directory
 * @returns {string[]} empty if it cannot be read
 */
function namesIn(directory) {
  return ifReadable(() => fs.readdirSync(directory)) ?? [];
}

/**
 * @param {string} file
 * @returns {any}
 * @throws {Error} if it cannot be read, or is no JSON
 */
function readJson(file) {
  return JSON.parse(readRegularFile(file, MAX_FILE_BYTES).toString());
}

/**
 * @param {string} file
 * @param {object} content
 */
function writeJson(file, content) {
  writeFile(file, [Buffer.from(JSON.stringify(content))]);
}

module.exports = { Generation, namesIn };
