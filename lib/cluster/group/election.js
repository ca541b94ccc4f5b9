'use strict';

// Runs in every process of a group, on its event loop. Finds out which process aggregates (the holder) and
// links to it, and takes over if it is dead or does not answer. The holder is a member like any other, by a
// link to itself.

const { newKey } = require('./group-names');
const { Holder } = require('./holder');
const { HolderLink } = require('./holder-link');
const { connect, listen } = require('../links/socket');
const { textOf } = require('../../options/thrown');
const { warnOnce } = require('../../options/warnings');
const { unavailable } = require('../../registry/unavailable');
const { unref, pause, settledWithin } = require('../../event-loop/timers');
const { debug } = require('../../options/debug-log');

// Pauses before the next attempt to find the holder: random, up to these, which grow.
const FIRST_PAUSE_MILLISECONDS = 20;
const PAUSE_FACTOR = 1.3;
const LONGEST_PAUSE_MILLISECONDS = 1000;

// For scrapers: why it failed may contain paths.
const NO_LINK = "The group's metrics cannot be collected.";

// A process that accepts connections and does not greet for so long is replaced. One that has just won the
// election needs less.
const GREETING_MILLISECONDS = 5000;

// What a check notices is rare and harms no page: the holder checks at each message. So an idle process is
// woken seldom.
const CHECK_MILLISECONDS = 5000;
const FRESHEN_CHECKS = 720;

/**
 * A holder that possibly does not answer.
 *
 * @typedef {object} Suspect
 * @property {number} generation
 * @property {boolean} isSilent whether it is replaced
 * @property {number} unansweredSince since when it has not greeted, by performance.now()
 */

/**
 * The process as the election uses it.
 *
 * @typedef {object} Candidate
 * @property {() => import('../cluster-options').ClusterOptions} options
 * @property {() => number} id that a holder has given it; 0 if none has
 * @property {(id: number) => void} onIdentified called with the id that a holder gives it
 * @property {(message: any) => void} onRequest called with messages of type REQUEST and WELCOME
 */

class Election {
  #directory;
  #candidate;
  #key = newKey();
  /** @type {import('node:net').Server | undefined} */
  #server = undefined;
  /** @type {HolderLink | undefined} to the holder */
  link = undefined;
  /** @type {Holder | undefined} if this process aggregates */
  holder = undefined;
  /** Why there is no link. */
  failure = '';
  /** @type {Promise<void> | undefined} while the directory and the socket are created */
  #opening = undefined;
  /** @type {Suspect | undefined} */
  #suspect = undefined;
  /** Whether this process has ever met another one: then the group does not end with that. */
  #hasMet = false;
  /** Whether the search for the holder is under way. */
  #isSearching = false;
  /**
   * @type {Set<(link: HolderLink) => void>} who waits for the holder. Not reactions to a promise, which would
   *   stay with it after their timeout: the search may never end
   */
  #waiting = new Set();
  #checks = 0;

  /**
   * @param {import('./group-directory').GroupDirectory} directory
   * @param {Candidate} candidate
   */
  constructor(directory, candidate) {
    this.#directory = directory;
    this.#candidate = candidate;
  }

  /** Takes part from now on. Never throws. */
  join() {
    unref(setInterval(() => this.#check(), CHECK_MILLISECONDS));
    void this.#follow();
  }

  /** The process ends. */
  leave() {
    this.#directory.leave(this.#key);
  }

  /**
   * The process does not end meanwhile.
   *
   * @param {number} timeout milliseconds
   * @returns {Promise<HolderLink>}
   * @throws {Error} if there is no link in time; at once if this process can have no socket
   */
  async linked(timeout) {
    let { link } = this;
    if (link !== undefined) return link;
    /** @type {(found: HolderLink) => void} */
    let onFound = () => {};
    const found = new Promise(resolve => (onFound = holderLink => resolve((link = holderLink))));
    this.#waiting.add(onFound);
    void this.#follow();
    // One failure proves nothing: the last process of a group may have removed the directory at that moment.
    const hasPlace = (await this.#canOpen()) || (await this.#canOpen());
    if (hasPlace) await settledWithin(found, timeout);
    else this.#warn();
    this.#waiting.delete(onFound);
    if (link !== undefined) return link;
    const reason = this.failure || 'no process of the group answers';
    throw unavailable(`The group's metrics cannot be collected: ${reason}`, NO_LINK);
  }

  /** Finds the holder and links to it, or becomes it, however long that takes. */
  async #follow() {
    if (this.#isSearching) return;
    this.#isSearching = true;
    let longest = FIRST_PAUSE_MILLISECONDS;
    while (!(await this.#isSettled()) || this.link === undefined) {
      await pause(Math.random() * longest);
      longest = Math.min(longest * PAUSE_FACTOR, LONGEST_PAUSE_MILLISECONDS);
      if (longest === LONGEST_PAUSE_MILLISECONDS && this.#server === undefined) this.#warn();
    }
    // In this turn: if the link is lost from now on, another search begins.
    this.#isSearching = false;
    for (const onFound of this.#waiting) onFound(this.link);
  }

  /** @returns {Promise<boolean>} whether the link to the newest holder is there */
  async #isSettled() {
    try {
      await this.#open();
      const own = this.holder?.isCurrent() ? this.holder.generation : undefined;
      const newest = own === undefined ? this.#directory.newest() : { generation: own, key: this.#key };
      if (newest === undefined) {
        await this.#elect(1);
        return false;
      }
      const { generation, key } = newest;
      if (this.link?.generation === generation) return true;
      this.link?.close();
      if (own !== undefined) return await this.#linkTo(key, generation);
      const { isSilent } = this.#suspectOf(generation);
      // If the key is that of this process, an error has ended its own election.
      if (key !== this.#key && !isSilent && (await this.#linkTo(key, generation))) return true;
      // If the election fails, on a full disk for example, the holder is tried again: it may answer by then.
      this.#suspect = undefined;
      await this.#elect(generation + 1, isSilent ? key : undefined);
      return false;
    } catch (error) {
      debug('no link to the group: %s', error);
      this.failure = textOf(error);
      return false;
    }
  }

  /** Reports that the counts of this process are on no page. */
  #warn() {
    warnOnce('group', `This process takes no part in its group: ${this.failure}`);
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
    if (this.#directory.hasSocket(this.#key)) return;
    // A pipe of Windows is not removed with the directory.
    if (this.#server === undefined || process.platform !== 'win32') {
      this.#server?.close();
      this.#server = undefined;
      this.#server = await listen(this.#directory.socketOf(this.#key), socket => this.#onConnection(socket));
    }
    this.#directory.showPipe(this.#key);
  }

  /** Somebody has removed the socket: without it, this process would be taken for dead. */
  #openAgain() {
    if (this.#isSearching || this.#directory.hasSocket(this.#key)) return;
    void this.#open().catch(error => debug('the socket cannot be restored: %s', error));
  }

  /** @param {import('node:net').Socket} socket */
  #onConnection(socket) {
    socket.unref();
    socket.on('error', error => debug('a connection failed: %s', error));
    if (this.holder?.isCurrent()) {
      this.holder.accept(socket);
      return;
    }
    // It is a notice, or whether this process lives.
    socket.destroy();
    this.#check();
  }

  /**
   * @param {string} key of the holder
   * @param {number} generation
   * @returns {Promise<boolean>} false if it is dead
   * @throws {Error} if it does not answer, or is not ready
   */
  async #linkTo(key, generation) {
    if (key === '') return false;
    const suspect = this.#suspectOf(generation);
    /** @type {import('node:net').Socket} */
    let socket;
    try {
      socket = await connect(this.#directory.socketOf(key));
      this.#hasMet = true;
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (code === 'ECONNREFUSED' || code === 'ENOENT') return false;
      // It accepts no connections, and has as many as it can have: it is stopped, perhaps.
      if (code === 'EAGAIN') this.#onUnanswered(suspect, /** @type {Error} */ (error));
      throw error;
    }
    const self = { key: this.#key, id: this.#candidate.id() || undefined };
    const link = new HolderLink(socket, generation, self, {
      // At once: requests may have come with it.
      onHello: id => {
        this.#candidate.onIdentified(id);
        this.link = link;
      },
      onRequest: message => {
        this.#candidate.onRequest(message);
        this.#openAgain();
      },
      onSilence: () => (this.#suspectOf(generation).isSilent = true),
      onEnd: () => {
        if (this.link !== link) return;
        this.link = undefined;
        void this.#follow();
      },
    });
    await link.welcome.catch(error => this.#onUnanswered(suspect, error));
    this.#suspect = undefined;
    if (this.link !== link) throw new Error('the link to the process that aggregates has ended');
    return true;
  }

  /**
   * @param {number} generation
   * @returns {Suspect} what was noticed of its holder so far
   */
  #suspectOf(generation) {
    if (this.#suspect?.generation !== generation)
      this.#suspect = { generation, isSilent: false, unansweredSince: Infinity };
    return this.#suspect;
  }

  /**
   * @param {Suspect} suspect that listens
   * @param {Error} error
   * @returns {never}
   */
  #onUnanswered(suspect, error) {
    const now = performance.now();
    suspect.unansweredSince = Math.min(suspect.unansweredSince, now);
    if (now - suspect.unansweredSince < GREETING_MILLISECONDS) throw error;
    suspect.isSilent = true;
    const { path } = this.#directory;
    const message = `A process listens in ${path} and does not answer as prom-client-cluster: it is replaced`;
    warnOnce('group-holder', message);
    throw new Error(message);
  }

  /**
   * Tries to become the holder.
   *
   * @param {number} generation
   * @param {string} [silent] key of the holder that is replaced, if that does not answer
   */
  async #elect(generation, silent) {
    const holder = await Holder.claim({
      directory: this.#directory,
      generation,
      key: this.#key,
      isContinuing: this.#hasMet,
      silent,
      options: this.#candidate.options,
      onDeposed: () => {
        this.holder = undefined;
        void this.#follow();
      },
    });
    if (holder !== undefined) this.holder = holder;
  }

  /** Notices that another process has taken over, or that the directory was removed. */
  #check() {
    try {
      if (!this.holder?.isCurrent() && this.link !== undefined) {
        const [newest] = this.#directory.generations();
        if (newest > this.link.generation) this.link.close();
      }
      this.#openAgain();
      this.holder?.writeAgain();
      if (++this.#checks % FRESHEN_CHECKS === 0) this.#directory.freshen(this.#key, this.holder?.generation);
    } catch (error) {
      debug('the directory cannot be read: %s', error);
    }
  }
}

module.exports = { Election };
