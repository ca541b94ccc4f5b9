'use strict';

// Runs in every process of a group, on its event loop. Finds out which process aggregates (the leader) and
// links to it, and takes over if it is dead or does not answer.

const { newId } = require('./group-names');
const { isGone } = require('./group-directory');
const { Leader } = require('./leader');
const { LeaderLink } = require('./leader-link');
const { connect, listen } = require('../links/socket');
const { textOf } = require('../../options/thrown');
const { warnOnce } = require('../../options/warnings');
const { unavailable } = require('../../registry/unavailable');
const { unref, pause, settledWithin } = require('../../event-loop/timers');
const { debug } = require('../../options/debug-log');

// Pauses before the next attempt to find the leader: random, up to these, which grow.
const FIRST_PAUSE_MILLISECONDS = 20;
const PAUSE_FACTOR = 1.3;
const LONGEST_PAUSE_MILLISECONDS = 1000;

// How often a waiting scrape checks whether the leader was found.
const WAIT_MILLISECONDS = 10;

// Scrapers get this text only, because the cause may contain paths.
const NO_LINK = "The group's metrics cannot be collected.";

// An idle process is rarely woken. What a check detects is rare and spoils no page, because the leader checks
// before each page.
const CHECK_MILLISECONDS = 5000;
const FRESHEN_MILLISECONDS = 3_600_000;

/**
 * The process as the election uses it.
 *
 * @typedef {object} Candidate
 * @property {() => import('../cluster-options').ClusterOptions} options
 * @property {(message: any) => void} onRequest called with messages of type REQUEST and WELCOME
 */

class Election {
  #directory;
  #candidate;
  /** This process's id; 0 until it listens. */
  id = 0;
  /** @type {import('node:net').Server | undefined} */
  #server = undefined;
  /** @type {LeaderLink | undefined} to the leader, if that is another process */
  #link = undefined;
  /** @type {Leader | undefined} if this process aggregates */
  leader = undefined;
  /** Why there is no link. */
  failure = 'no process of the group answers';
  /** @type {Promise<void> | undefined} while the directory and the socket are created */
  #opening = undefined;
  /** Generation whose leader does not answer. */
  #unresponsive = 0;
  /** Whether this process has ever met another one: then the group goes on when that one ends. */
  #hasMet = false;
  /** Whether the search for the leader is under way. */
  #isSearching = false;

  /**
   * @param {import('./group-directory').GroupDirectory} directory
   * @param {Candidate} candidate
   */
  constructor(directory, candidate) {
    this.#directory = directory;
    this.#candidate = candidate;
  }

  /** Joins the group. Never throws. */
  join() {
    unref(setInterval(() => void this.#follow(), CHECK_MILLISECONDS));
    const freshen = () => this.#directory.freshen(this.id, this.leader?.generation);
    unref(setInterval(freshen, FRESHEN_MILLISECONDS));
    void this.#follow();
  }

  /** @returns {Leader | LeaderLink | undefined} */
  get link() {
    return this.leader ?? this.#link;
  }

  /**
   * The process does not end meanwhile.
   *
   * @param {number} timeout milliseconds
   * @returns {Promise<Leader | LeaderLink>}
   * @throws {Error} if there is no link in time; at once if this process can have no socket
   */
  async linked(timeout) {
    if (this.link !== undefined) return this.link;
    void this.#follow();
    // Tried twice, because the last process of a group may have removed the directory at that moment.
    const hasPlace = (await this.#canOpen()) || (await this.#canOpen());
    if (!hasPlace) this.#warn();
    // Polls instead of waiting for the promise of the search: that may never settle, and each caller's
    // reaction would stay in memory. The pause does not keep the process alive, and the other timer may be a
    // fake one of a test.
    const end = performance.now() + timeout;
    while (this.link === undefined && hasPlace && performance.now() < end)
      await settledWithin(pause(WAIT_MILLISECONDS), WAIT_MILLISECONDS);
    if (this.link !== undefined) return this.link;
    throw unavailable(`The group's metrics cannot be collected: ${this.failure}`, NO_LINK, 'NO_AGGREGATOR');
  }

  /**
   * Finds the leader and links to it, or becomes it, however long that takes. Also notices that another
   * process has taken over, or that the directory or the socket was removed: without its socket, this process
   * would be taken for dead.
   */
  async #follow() {
    if (this.#isSearching) return;
    this.#isSearching = true;
    let longest = FIRST_PAUSE_MILLISECONDS;
    while (!(await this.#isSettled()) || this.link === undefined) {
      await pause(Math.random() * longest);
      longest = Math.min(longest * PAUSE_FACTOR, LONGEST_PAUSE_MILLISECONDS);
      if (longest === LONGEST_PAUSE_MILLISECONDS && this.#server === undefined) this.#warn();
    }
    // In the same turn: if the link is lost from now on, another search begins.
    this.#isSearching = false;
  }

  /** @returns {Promise<boolean>} whether the link to the newest leader is there */
  async #isSettled() {
    try {
      await this.#open();
      if (this.leader?.isCurrent()) return true;
      const { generation, leader } = this.#directory.newest();
      if (this.#link?.generation === generation) return true;
      this.#link?.close();
      const isUnresponsive = this.#unresponsive === generation;
      // If it is this process's own id, an error has interrupted its election.
      const isOther = leader !== undefined && leader.id !== this.id;
      if (isOther && !isUnresponsive && (await this.#linkTo(leader.id, generation))) return true;
      // If the election fails, on a full disk for example, the old leader is tried again: by then it may
      // answer.
      this.#unresponsive = 0;
      await this.#elect(generation + 1, isUnresponsive ? leader?.id : undefined);
      return this.leader !== undefined;
    } catch (error) {
      debug('no link to the group: %s', error);
      this.failure = textOf(error);
      return false;
    }
  }

  /** Warns that the counts of this process are on no page. */
  #warn() {
    warnOnce('group', `This process has not joined its group: ${this.failure}`);
  }

  /**
   * Creates the directory and the socket, if they are missing.
   *
   * @returns {Promise<void>}
   */
  #open() {
    this.#opening ??= this.#openNow().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** @returns {Promise<boolean>} whether that works */
  async #canOpen() {
    try {
      await this.#open();
      return true;
    } catch (error) {
      this.failure = textOf(error);
      return false;
    }
  }

  async #openNow() {
    this.#directory.open();
    if (this.id !== 0 && this.#directory.hasSocket(this.id)) return;
    // A pipe of Windows is not removed with the directory.
    if (this.#server === undefined || process.platform !== 'win32') {
      this.#server?.close();
      this.#server = undefined;
      await this.#listen();
    }
    this.#directory.showPipe(this.id);
  }

  /** A process owns an id while it listens on the socket of that name. */
  async #listen() {
    for (let id = this.id || newId(); ; id = newId(id)) {
      try {
        const place = this.#directory.socketOf(id);
        this.#server = await listen(place, socket => this.#onConnection(socket));
        this.id = id;
        return;
      } catch (error) {
        if (this.id !== 0 || /** @type {any} */ (error).code !== 'EADDRINUSE') throw error;
      }
    }
  }

  /** @param {import('node:net').Socket} socket */
  #onConnection(socket) {
    socket.unref();
    socket.on('error', error => debug('a connection failed: %s', error));
    if (this.leader?.isCurrent()) {
      this.leader.accept(socket);
      return;
    }
    // The connection is a notice that another process leads, or a probe whether this process lives.
    socket.destroy();
    void this.#follow();
  }

  /**
   * @param {number} id of the leader
   * @param {number} generation
   * @returns {Promise<boolean>} false if it is dead
   * @throws {Error} if it does not answer, or is not ready
   */
  async #linkTo(id, generation) {
    /** @type {import('node:net').Socket} */
    let socket;
    try {
      socket = await connect(this.#directory.socketOf(id));
    } catch (error) {
      if (isGone(error)) return false;
      throw error;
    }
    this.#hasMet = true;
    const link = new LeaderLink(socket, generation, this.id, {
      // At once: requests may have come with it.
      onWelcome: () => (this.#link = link),
      onRequest: message => this.#candidate.onRequest(message),
      onUnresponsive: () => (this.#unresponsive = generation),
      onEnd: () => {
        if (this.#link !== link) return;
        this.#link = undefined;
        void this.#follow();
      },
    });
    await link.welcome;
    return true;
  }

  /**
   * Tries to become the leader.
   *
   * @param {number} generation
   * @param {number} [unresponsive] id of the leader to be replaced, if it does not answer
   */
  async #elect(generation, unresponsive) {
    this.leader = await Leader.elect({
      directory: this.#directory,
      generation,
      id: this.id,
      isContinuing: this.#hasMet,
      unresponsive,
      options: this.#candidate.options,
      onRequest: message => this.#candidate.onRequest(message),
      onDeposed: () => {
        this.leader = undefined;
        void this.#follow();
      },
    });
  }
}

module.exports = { Election };
