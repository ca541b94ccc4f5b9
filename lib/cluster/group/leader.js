'use strict';

// Runs in the process that leads a group, on its event loop. It runs the same code as a cluster's primary,
// with the group's members as workers, until another process takes over. Its own process is a member like any
// other, except that its link consists of direct calls.

const { GroupMembers } = require('./group-members');
const { unavailable } = require('../../registry/unavailable');
const { pacedStarts } = require('../primary/page-requests');
const { debug } = require('../../options/debug-log');
// Loaded now, because fake timers of an application's tests would never fire.
const { setImmediate } = require('node:timers');

/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */

/**
 * @typedef {object} LeaderOptions
 * @property {import('./group-directory').GroupDirectory} directory
 * @property {number} generation
 * @property {number} id of this process
 * @property {boolean} isContinuing whether this process has met another one of the group
 * @property {number} [unresponsive] id of a member that does not answer
 * @property {() => import('../cluster-options').ClusterOptions} options read when there is anything to
 *   aggregate
 * @property {(message: any) => void} onRequest called with messages to the member that this process is
 * @property {() => void} onDeposed called when this process has found that another one has taken over
 */

class Leader {
  #directory;
  #id;
  #options;
  #onDeposed;
  #members;
  #own;
  #adopt;
  /**
   * @type {import('../primary/cluster-primary').ClusterPrimary | undefined} undefined until there is anything
   *   to aggregate
   */
  primary = undefined;
  #isClosed = false;
  /** Of scrapes of this process, paced like those of other members. */
  #starts = pacedStarts();

  /**
   * Tries to become the leader.
   *
   * @param {LeaderOptions} options
   * @returns {Promise<Leader | undefined>} undefined if another process was first
   */
  static async elect(options) {
    const { directory, generation, id } = options;
    // Loaded first: a process that cannot load it, because it has no free descriptors, does not lead.
    require('../primary/cluster-primary');
    if (!directory.claim(generation, id)) return undefined;
    debug('process %d aggregates, generation %d', process.pid, generation);
    const ids = directory.idsBefore(generation);
    const alive = await Promise.all(ids.map(each => each === id || directory.isAlive(each)));
    if (!directory.isLedBy(generation, id)) return undefined;
    // If none of its members lives, the earlier group has ended, and this one is new.
    const isContinued = options.isContinuing || alive.some(Boolean);
    const adopt = directory.succeed(generation, isContinued);
    const leader = new Leader(options, isContinued ? ids.filter(each => each !== id) : [], adopt);
    directory.notifyAll(id).catch(error => debug('the directory is not cleaned: %s', error));
    return leader;
  }

  /**
   * @param {LeaderOptions} options
   * @param {number[]} ids of other processes that have snapshot files
   * @param {string | undefined} adopt directory of snapshot files of an earlier leader
   */
  constructor({ directory, generation, id, unresponsive, options, onRequest, onDeposed }, ids, adopt) {
    this.generation = generation;
    this.#directory = directory;
    this.#id = id;
    this.#options = options;
    this.#onDeposed = onDeposed;
    this.#adopt = adopt;
    this.#members = new GroupMembers({
      ids,
      unresponsive,
      directory,
      isCurrent: () => this.isCurrent(),
    });
    // A process that is alone starts no aggregator.
    this.#members.on('fork', () => this.#isShared && this.aggregate());
    this.#own = this.#members.join(id, {
      isConnected: true,
      send: (message, onSent) => {
        // Other members are asked before this process captures its own numbers.
        setImmediate(() => onRequest(message));
        onSent?.(null);
      },
      close: () => {},
    });
  }

  /** Whether the group has other members. */
  get #isShared() {
    return this.#members.count > 1;
  }

  /** @returns {import('../wire/messages').GroupFacts} */
  get facts() {
    const leader = { id: this.#id, pid: process.pid };
    return {
      directory: this.#directory.path,
      generation: this.generation,
      members: this.#members.count,
      leader,
    };
  }

  get isConnected() {
    return this.isCurrent();
  }

  /**
   * Handles what this process sends to the leader, which is itself.
   *
   * @param {object} message
   * @param {() => void} [onSent]
   */
  send(message, onSent) {
    this.#members.receive(this.#own, message);
    onSent?.();
  }

  /** @param {import('node:net').Socket} socket of a process that has connected */
  accept(socket) {
    this.#members.accept(socket);
  }

  /**
   * The group's page.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing members are used
   * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
   * @throws {Error} if another process has taken over, whose pages may have newer numbers
   */
  async page(format, timeout) {
    await new Promise(resolve => this.#starts.add(() => resolve(undefined)));
    // A process that is alone starts to aggregate when it is scraped.
    const page = await this.aggregate().collect(format, timeout);
    if (!this.isCurrent()) throw unavailable('Another process has taken over the group.');
    return page;
  }

  /**
   * For RemoteWrite.
   *
   * @returns {import('../../registry/push-target').PushTarget | undefined} undefined if another process has
   *   taken over
   */
  pushTarget() {
    if (!this.isCurrent()) return undefined;
    return { primary: this.aggregate(), isShared: this.#isShared };
  }

  /** @returns {import('../primary/cluster-primary').ClusterPrimary} */
  aggregate() {
    if (this.primary === undefined) {
      const { ClusterPrimary } = require('../primary/cluster-primary');
      const options = {
        ...this.#options(),
        includePrimary: false,
        directory: this.#directory.placeOf(this.generation),
        // The next leader looks for it there only.
        fallbacks: [],
        adopt: this.#adopt,
        groupFacts: () => this.facts,
        settled: this.#members.settled,
      };
      // This process's own registries are included as those of a member.
      this.primary = new ClusterPrimary(/** @type {any} */ (this.#members), options, () => []);
    }
    return this.primary;
  }

  /**
   * @returns {boolean} whether this process still leads; if another one has taken over, or somebody has
   *   removed the directory, it stops
   */
  isCurrent() {
    if (this.#isClosed) return false;
    if (this.#directory.isLedBy(this.generation, this.#id)) return true;
    this.close();
    this.#onDeposed();
    return false;
  }

  /** Another process leads. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#members.close();
    this.primary?.close().catch(error => debug('the aggregator does not end: %s', error));
  }
}

module.exports = { Leader };
