'use strict';

// Runs in the process that aggregates a group (the holder), on its event loop. It runs what a cluster's
// primary runs, with the group's members for workers, until another process takes over.

const { GroupMembers } = require('./group-members');
const { debug } = require('../../options/debug-log');

const CHECKPOINT_MILLISECONDS = 1000;

/**
 * @typedef {object} HolderOptions
 * @property {import('./group-directory').GroupDirectory} directory
 * @property {number} generation
 * @property {string} key of this process
 * @property {boolean} isContinuing whether this process has met another one of the group
 * @property {string} [silent] key of a member that does not answer
 * @property {() => import('../cluster-options').ClusterOptions} options read when there is anything to
 *   aggregate
 * @property {() => void} onDeposed called when this process has found that another one has taken over
 */

class Holder {
  #directory;
  #files;
  #key;
  #options;
  #onDeposed;
  #members;
  #adopt;
  /**
   * @type {import('../primary/cluster-primary').ClusterPrimary | undefined} undefined until there is anything
   *   to aggregate
   */
  primary = undefined;
  #isClosed = false;
  /** Whether the files of the generation say who aggregates, and who the members are. */
  #isWritten = false;

  /**
   * Tries to become the holder.
   *
   * @param {HolderOptions} options
   * @returns {Promise<Holder | undefined>} undefined if another process was first
   */
  static async claim(options) {
    const { directory, generation, key, isContinuing } = options;
    if (!directory.claim(generation, key)) return undefined;
    debug('process %d aggregates, generation %d', process.pid, generation);
    const list = directory.readMembers(generation);
    const isAlive = (/** @type {string} */ member) => member === key || directory.isAlive(member);
    const alive = await Promise.all([...list.keys.values()].map(isAlive));
    if (!directory.generation(generation).isHeldBy(key)) return undefined;
    // If none of its members lives, the earlier group has ended, and this one is new.
    const isContinued = isContinuing || alive.some(Boolean);
    if (!isContinued) list.keys.clear();
    const adopt = directory.succeed(generation, isContinued);
    for (const id of adopt === undefined ? [] : directory.idsIn(adopt)) {
      if (!list.keys.has(id)) list.keys.set(id, '');
      list.next = Math.max(list.next, id + 1);
    }
    const holder = new Holder(options, list, adopt);
    const cleaned = directory.notifyAll(key).then(() => directory.sweep());
    cleaned.catch(error => debug('the directory is not cleaned: %s', error));
    return holder;
  }

  /**
   * @param {HolderOptions} options
   * @param {import('./generation').MemberList} list members of earlier generations that live
   * @param {string | undefined} adopt directory of snapshot files of an earlier holder
   */
  constructor({ directory, generation, key, silent, options, onDeposed }, list, adopt) {
    this.generation = generation;
    this.#directory = directory;
    this.#files = directory.generation(generation);
    this.#key = key;
    this.#options = options;
    this.#onDeposed = onDeposed;
    this.#adopt = adopt;
    this.#members = new GroupMembers({
      list,
      silent,
      isAlive: async member => member === key || directory.isAlive(member),
      onDead: member => directory.removeSocket(member),
      isCurrent: () => {
        const isCurrent = this.isCurrent();
        if (isCurrent) this.#aggregateIfShared();
        return isCurrent;
      },
      onChange: changed => this.#onMembers(changed),
    });
    this.#onMembers(list);
  }

  /** @returns {import('../wire/messages').GroupFacts} */
  get facts() {
    const id = this.#members.idOf(this.#key);
    return {
      directory: this.#directory.path,
      generation: this.generation,
      members: this.#members.count,
      // It has no id before it is linked to itself.
      aggregator: id === undefined ? undefined : { pid: process.pid, id },
    };
  }

  /** Whether the group has other members. */
  get isShared() {
    return this.#members.hasOthersThan(this.#key);
  }

  /** Whether another process continues with the group's directory when this one ends. */
  get isContinued() {
    // This includes a process that has just started and is no member yet.
    return this.#directory.hasOthersThan(this.#key);
  }

  /** @param {import('node:net').Socket} socket of a process that has connected */
  accept(socket) {
    this.#members.accept(socket);
  }

  /**
   * For RemoteWrite.
   *
   * @returns {Promise<import('../../registry/push-target').PushTarget | undefined>} undefined if another
   *   process has taken over
   */
  async pushTarget() {
    await this.#members.settled;
    if (!this.isCurrent()) return undefined;
    return { primary: this.aggregate(), isShared: this.isShared };
  }

  /** @param {import('./generation').MemberList} list */
  #onMembers(list) {
    if (this.#isClosed) return;
    this.#write(list);
    this.#aggregateIfShared();
  }

  /** Writes what could not be written before. */
  writeAgain() {
    if (!this.#isWritten && !this.#isClosed) this.#write(this.#members.list);
  }

  /** @param {import('./generation').MemberList} list */
  #write(list) {
    this.#isWritten = false;
    try {
      this.#files.writeMembers(list);
      this.#files.completeHolder(this.#key);
      this.#isWritten = true;
    } catch (error) {
      // A full disk, for example. A later holder learns the ids from the members that are linked to it.
      debug('the files of the generation cannot be written: %s', error);
    }
  }

  /** A process that is alone starts no aggregator. */
  #aggregateIfShared() {
    try {
      if (this.isShared) this.aggregate();
    } catch (error) {
      // A file of this package cannot be loaded, because the process has no descriptors, for example. The
      // next message is another try.
      debug('the aggregator cannot be started: %s', error);
    }
  }

  /** @returns {import('../primary/cluster-primary').ClusterPrimary} */
  aggregate() {
    if (this.primary === undefined) {
      const { ClusterPrimary } = require('../primary/cluster-primary');
      const options = {
        checkpointInterval: CHECKPOINT_MILLISECONDS,
        ...this.#options(),
        includePrimary: false,
        directory: this.#files.place,
        // The next holder finds it there only.
        fallbacks: [],
        adopt: this.#adopt,
        groupFacts: () => this.facts,
        isContinued: () => this.isContinued,
      };
      // The registries of this process come over its link to itself.
      this.primary = new ClusterPrimary(/** @type {any} */ (this.#members), options, () => []);
    }
    return this.primary;
  }

  /**
   * @returns {boolean} whether this process still aggregates; if another one has taken over, or somebody has
   *   removed the directory, it stops
   */
  isCurrent() {
    if (this.#isClosed) return false;
    if (this.#files.isHeldBy(this.#key)) return true;
    this.close();
    this.#onDeposed();
    return false;
  }

  /** Another process aggregates. */
  close() {
    this.#isClosed = true;
    this.#members.close();
    this.primary?.close().catch(error => debug('the aggregator does not end: %s', error));
  }
}

module.exports = { Holder };
