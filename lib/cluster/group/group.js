'use strict';

// Runs in every process of a group, on its event loop. The process's part in the group: finds out who
// aggregates (the holder), links to it, and takes over if it is dead or does not answer. The holder runs what
// a cluster's primary runs, and is a member like any other, by a link to itself.

const { debuglog } = require('node:util');
const { GroupDirectory, newKey } = require('./group-directory');
const { GroupMembers } = require('./group-members');
const { SocketLink, connect, listen } = require('../links/socket');
const { listenToExit } = require('../worker/worker-hook');
const { WorkerResponder } = require('../worker/worker-responder');
const { ClusterPages } = require('../worker/cluster-pages');
const { unavailable } = require('../../registry/unavailable');
const { warnOnce } = require('../../options/warnings');
const { REQUEST, WELCOME, PAGE, HELLO, PING, hasType } = require('../wire/messages');

const debug = debuglog('prom-client-cluster');

const CHECKPOINT_MILLISECONDS = 1000;

// A holder that sends nothing for so long after a ping is stopped, or its event loop is held: another process
// takes over. Then what has arrived meanwhile is read first, because this process may have been stopped.
const SILENCE_MILLISECONDS = 2000;
const LAST_CHANCE_MILLISECONDS = 100;

// Pauses before the next attempt to find the holder: random, up to these, which grow.
const FIRST_PAUSE_MILLISECONDS = 20;
const PAUSE_FACTOR = 1.3;
const LONGEST_PAUSE_MILLISECONDS = 1000;

// However often this process is scraped, it sends no more than one ping in this time.
const PING_MILLISECONDS = 250;

// How long it takes a holder to listen again, after somebody has removed the directory.
const MISSING_MILLISECONDS = 100;

const CHECK_MILLISECONDS = 1000;
const FRESHEN_CHECKS = 3600;

const OWN_EXIT_LISTENERS = 2;
const MAX_EXIT_TRIES = 3;

/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../../exposition/pooled-page').PageBytes} PageBytes */

/** @type {import('../primary/cluster-state').ClusterState} */
const NOTHING_AGGREGATED = {
  workers: 0,
  silent: 0,
  failing: 0,
  retiring: 0,
  retired: 0,
  lostThreads: 0,
  aggregator: 'none',
  aggregatorReason: '',
  directory: '',
  refused: {},
  failures: [],
  conflicts: 0,
  oldestCapture: undefined,
  snapshotBytes: 0,
};

/**
 * The link to a holder.
 *
 * @typedef {object} HolderLink
 * @property {SocketLink} link
 * @property {number} generation
 * @property {ClusterPages} pages
 * @property {Promise<never>} ended rejected when the link has ended
 */

/**
 * What a holder has.
 *
 * @typedef {object} Holding
 * @property {number} generation
 * @property {GroupMembers} members
 * @property {string | undefined} adopt directory of snapshot files of an earlier holder
 * @property {import('../primary/cluster-primary').ClusterPrimary | undefined} primary once there is anything
 *   to aggregate
 */

class Group {
  #directory;
  #options;
  #registries;
  #key = newKey();
  #id = 0;
  /** @type {import('node:net').Server | undefined} */
  #server = undefined;
  /** @type {HolderLink | undefined} */
  #holder = undefined;
  /** @type {Holding | undefined} */
  #holding = undefined;
  /** Generation of a holder that does not answer. */
  #silent = 0;
  /** Generation of a holder whose socket was missing. */
  #missing = 0;
  /** When a ping was last sent, by performance.now(). */
  #pingedAt = -Infinity;
  /** @type {NodeJS.Timeout | undefined} until the next one */
  #pingTimer = undefined;
  /** When the holder's last message came. */
  #heardAt = 0;
  #isFollowing = false;
  /** @type {(() => void)[]} called when the link to a holder is there */
  #onLinked = [];
  /** @type {unknown} why there is no link */
  #failure = undefined;
  /** @type {WorkerResponder | undefined} */
  #responder = undefined;
  /** Where the exit snapshot goes, and its name. */
  #spool = '';
  #exitName = '';
  #checks = 0;
  /** Whether the options are those of the program. */
  #isConfigured = false;
  #exit = {
    onExitFirst: () => process.listenerCount('exit') > OWN_EXIT_LISTENERS && this.#writeExitSnapshot(),
    onExit: () => this.#onExit(),
  };

  /**
   * @param {string} directory absolute path
   * @param {import('../cluster-options').ClusterOptions} options
   * @param {() => Iterable<any>} registries
   */
  constructor(directory, options, registries) {
    this.#directory = new GroupDirectory(directory);
    this.#options = options;
    this.#registries = registries;
  }

  /** Takes part from now on. Never throws. */
  join() {
    listenToExit(this.#exit);
    setInterval(() => this.#check(), CHECK_MILLISECONDS).unref();
    void this.#follow();
  }

  /**
   * Options of the program that come after the process has joined by its environment.
   *
   * @param {import('../cluster-options').ClusterOptions} options
   */
  configure(options) {
    if (this.#isConfigured) return;
    this.#isConfigured = true;
    this.#options = options;
  }

  /** @returns {import('../primary/cluster-state').ClusterState} */
  state() {
    const group = {
      directory: this.#directory.path,
      isAggregator: this.#holding !== undefined,
      generation: this.#holding?.generation ?? this.#holder?.generation ?? 0,
    };
    return { ...(this.primary?.state() ?? NOTHING_AGGREGATED), group };
  }

  /** @returns {import('../primary/cluster-primary').ClusterPrimary | undefined} if this process aggregates */
  get primary() {
    return this.#holding?.primary;
  }

  /**
   * The group's page.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing members are used
   * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
   */
  async collect(format, timeout) {
    const deadline = performance.now() + timeout;
    for (;;) {
      const left = Math.max(deadline - performance.now(), 1);
      const holder = this.#holder ?? (await this.#linked(left));
      const { generation } = holder;
      try {
        return await (this.#holding?.generation === generation
          ? this.#collectHere(format, deadline)
          : this.#collectThere(holder, format, left));
      } catch (error) {
        const isReplaced = this.#holder !== holder || !holder.link.isConnected;
        const isDeposed = this.#holding !== undefined && !this.#isCurrent();
        if ((!isReplaced && !isDeposed) || performance.now() >= deadline) throw error;
        debug('the page is requested again: %s', error);
        // The end of the link may have come, but not been handled yet.
        if (!holder.link.isConnected) holder.link.close();
        await new Promise(resolve => setImmediate(resolve));
      }
    }
  }

  /**
   * @param {Format} format
   * @param {number} deadline
   */
  async #collectHere(format, deadline) {
    const holding = /** @type {Holding} */ (this.#holding);
    await holding.members.settled;
    const page = await this.#aggregate(holding).collect(format, Math.max(deadline - performance.now(), 1));
    // While this process was stopped, another one may have taken over, whose pages have newer numbers.
    if (!this.#isCurrent() || this.#holding !== holding) throw new Error('another process aggregates');
    return page;
  }

  /**
   * @param {HolderLink} holder
   * @param {Format} format
   * @param {number} timeout
   */
  async #collectThere(holder, format, timeout) {
    const timer = this.#watch(holder);
    const page = await Promise.race([holder.pages.page(format, timeout), holder.ended]);
    clearTimeout(timer);
    return page;
  }

  /**
   * @param {number} timeout milliseconds
   * @returns {Promise<HolderLink>}
   */
  #linked(timeout) {
    return new Promise((resolve, reject) => {
      const onLinked = () => {
        clearTimeout(timer);
        resolve(/** @type {HolderLink} */ (this.#holder));
      };
      // Not unref'd, because somebody waits.
      const timer = setTimeout(() => {
        this.#onLinked = this.#onLinked.filter(each => each !== onLinked);
        const { message = 'no process of the group answers' } = /** @type {any} */ (this.#failure ?? {});
        reject(unavailable(`The group's metrics cannot be collected: ${message}`));
      }, timeout);
      this.#onLinked.push(onLinked);
      void this.#follow();
    });
  }

  /** Runs hooks once more, and writes the process's numbers for the holder. */
  async handOver(/** @type {number} */ timeout) {
    await this.#responder?.handOver(timeout);
  }

  /** Finds the holder and links to it, or becomes it, however long that takes. */
  async #follow() {
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    let longest = FIRST_PAUSE_MILLISECONDS;
    while (!(await this.#isSettled())) {
      await new Promise(resolve => setTimeout(resolve, Math.random() * longest).unref());
      longest = Math.min(longest * PAUSE_FACTOR, LONGEST_PAUSE_MILLISECONDS);
    }
    this.#isFollowing = false;
    for (const resolve of this.#onLinked.splice(0)) resolve();
  }

  /** @returns {Promise<boolean>} whether the link to the newest holder is there */
  async #isSettled() {
    try {
      await this.#open();
      const newest = this.#directory.newest();
      if (this.#holding !== undefined && this.#holding.generation !== newest?.generation) this.#stepDown();
      if (newest === undefined) {
        await this.#elect(1);
        return false;
      }
      const { generation } = newest;
      if (this.#holder?.generation === generation) return true;
      this.#holder?.link.close();
      const isHolder = generation !== this.#silent && (await this.#link(newest.key, generation));
      if (!isHolder) await this.#elect(generation + 1);
      return isHolder;
    } catch (error) {
      debug('no link to the group: %s', error);
      this.#failure = error;
      const { code, message } = /** @type {any} */ (error);
      if (code === undefined && this.#server === undefined) warnOnce('group', message);
      return false;
    }
  }

  /** Creates the directory and the socket, if they are missing. */
  async #open() {
    this.#directory.open();
    if (this.#directory.hasSocket(this.#key, this.#server !== undefined)) return;
    this.#server?.close();
    this.#server = undefined;
    this.#server = await listen(this.#directory.socketOf(this.#key), socket => this.#onConnection(socket));
  }

  /** @param {import('node:net').Socket} socket */
  #onConnection(socket) {
    socket.unref();
    socket.on('error', error => debug('a connection failed: %s', error));
    // It is a notice, or whether this process lives.
    if (!this.#isCurrent()) {
      socket.destroy();
      this.#check();
    } else /** @type {Holding} */ (this.#holding).members.accept(socket);
  }

  /**
   * @param {string} key of the holder
   * @param {number} generation
   * @returns {Promise<boolean>} false if it is dead or does not answer
   */
  async #link(key, generation) {
    if (key === '') return false;
    /** @type {import('node:net').Socket} */
    let socket;
    try {
      socket = await connect(this.#directory.socketOf(key));
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (code === 'ECONNREFUSED' || (code === 'ENOENT' && this.#missing === generation)) return false;
      // Its socket is missing: it has ended, or somebody has removed the directory, and it listens again.
      if (code === 'ENOENT') await new Promise(resolve => setTimeout(resolve, MISSING_MILLISECONDS).unref());
      if (code === 'ENOENT') this.#missing = generation;
      throw error;
    }
    return new Promise((resolve, reject) => {
      let isWelcome = false;
      let isSilent = true;
      /** @type {(error: Error) => void} */
      let onEnded = () => {};
      const ended = new Promise((_, rejectEnded) => (onEnded = rejectEnded));
      ended.catch(() => {});
      const link = new SocketLink(socket, {
        onMessage: message => {
          this.#heardAt = performance.now();
          isSilent = false;
          if (isWelcome) this.#receive(message);
          else if (this.#isHello(message)) {
            isWelcome = true;
            clearTimeout(timer);
            const pages = new ClusterPages(this.#asLink());
            pages.receive({ type: PAGE, pages: true });
            this.#holder = { link, generation, pages, ended: /** @type {Promise<never>} */ (ended) };
            resolve(true);
          }
        },
        onEnd: () => {
          clearTimeout(timer);
          onEnded(new Error('the link to the process that aggregates has ended'));
          if (!isWelcome) reject(new Error('the process that aggregates is not ready'));
          if (this.#holder?.link !== link) return;
          this.#holder = undefined;
          void this.#follow();
        },
      });
      link.trust();
      const timer = setTimeout(() => {
        setTimeout(() => {
          if (isSilent) resolve(false);
          if (!isWelcome) link.close();
        }, LAST_CHANCE_MILLISECONDS).unref();
      }, SILENCE_MILLISECONDS).unref();
      link.send({ type: HELLO, key: this.#key, id: this.#id || undefined, pid: process.pid });
    });
  }

  /** @param {any} message */
  #isHello(message) {
    if (!hasType(message) || message.type !== HELLO) return false;
    const { id } = /** @type {any} */ (message);
    if (!Number.isSafeInteger(id) || id <= 0) return false;
    if (id !== this.#id) this.#retireResponder();
    this.#id = id;
    return true;
  }

  /** After the group has lost all it knew, this process gets another id. */
  #retireResponder() {
    this.#aimAt('');
    this.#responder = undefined;
  }

  /** @param {any} message of the holder */
  #receive(message) {
    if (!hasType(message)) return;
    if (![REQUEST, WELCOME, PAGE].includes(message.type)) return;
    this.#holder?.pages.receive(message);
    if (message.type !== PAGE) {
      const { directory, exitName } = /** @type {any} */ (message);
      this.#spool = directory;
      this.#exitName = exitName;
      this.#responder ??= new WorkerResponder(this.#asLink(), this.#registries);
      listenToExit(this.#exit);
      this.#responder.receive(message);
    }
  }

  /** @returns {import('../links/ipc').Link} whoever is the holder */
  #asLink() {
    return {
      id: this.#id,
      isConnected: () => this.#holder?.link.isConnected === true,
      send: (message, onSent) => {
        if (this.#holder !== undefined) this.#holder.link.send(message, onSent);
        else onSent?.();
      },
      user: () => process.geteuid?.(),
    };
  }

  /**
   * Asks whether the holder answers. If it does not, another process takes over.
   *
   * @param {HolderLink} holder
   * @returns {NodeJS.Timeout}
   */
  #watch(holder) {
    const askedAt = performance.now();
    if (this.#pingTimer === undefined) {
      const pause = this.#pingedAt + PING_MILLISECONDS - askedAt;
      this.#pingTimer = setTimeout(() => this.#ping(), pause).unref();
    }
    const timer = setTimeout(() => {
      const onLastChance = () => {
        if (this.#heardAt >= askedAt || this.#holder !== holder) return;
        debug('generation %d does not answer', holder.generation);
        this.#silent = holder.generation;
        holder.link.close();
      };
      setTimeout(onLastChance, LAST_CHANCE_MILLISECONDS).unref();
    }, SILENCE_MILLISECONDS);
    return timer.unref();
  }

  #ping() {
    this.#pingTimer = undefined;
    this.#pingedAt = performance.now();
    this.#holder?.link.send({ type: PING });
  }

  /**
   * Tries to become the holder.
   *
   * @param {number} generation
   */
  async #elect(generation) {
    const directory = this.#directory;
    if (!directory.claim(generation, this.#key)) return;
    debug('process %d aggregates, generation %d', process.pid, generation);
    const list = directory.readMembers(generation);
    const isAlive = (/** @type {string} */ key) => key === this.#key || directory.isAlive(key);
    const alive = await Promise.all([...list.keys.values()].map(isAlive));
    if (!directory.isCurrent(generation)) return;
    // Without any of its members, an earlier group has ended: this one is a new one.
    const isContinued = alive.some(Boolean);
    if (!isContinued) list.keys.clear();
    const adopt = directory.succeed(generation, isContinued);
    for (const id of adopt === undefined ? [] : directory.idsIn(adopt)) {
      if (!list.keys.has(id)) list.keys.set(id, '');
      list.next = Math.max(list.next, id + 1);
    }
    const members = new GroupMembers({
      list,
      isAlive: async key => isAlive(key),
      onDead: key => directory.removeSocket(key),
      isCurrent: () => this.#isCurrent(),
      onChange: changed => this.#onMembers(members, changed),
    });
    this.#holding = { generation, members, adopt, primary: undefined };
    this.#onMembers(members, list);
    const cleaned = directory.notifyAll(this.#key).then(() => directory.sweep());
    cleaned.catch(error => debug('the directory is not cleaned: %s', error));
  }

  /**
   * @param {GroupMembers} members
   * @param {import('./group-directory').MemberList} list
   */
  #onMembers(members, list) {
    const holding = this.#holding;
    if (holding?.members !== members) return;
    try {
      this.#directory.writeMembers(holding.generation, list);
    } catch (error) {
      // A full disk, for example. A later holder learns the ids from the members that are linked to it.
      debug('the list of members cannot be written: %s', error);
    }
    // A process that is alone starts no aggregator.
    if (members.hasOthersThan(this.#key)) this.#aggregate(holding);
  }

  /** @param {Holding} holding */
  #aggregate(holding) {
    if (holding.primary === undefined) {
      const { ClusterPrimary } = require('../primary/cluster-primary');
      const { members, generation, adopt } = holding;
      const options = {
        checkpointInterval: CHECKPOINT_MILLISECONDS,
        ...this.#options,
        includePrimary: false,
        directory: this.#directory.placeOf(generation),
        adopt,
        groupFacts: () => ({
          directory: this.#directory.path,
          generation: holding.generation,
          members: members.count,
          isShared: members.hasOthersThan(this.#key),
        }),
      };
      // The registries of this process come over its link to itself.
      holding.primary = new ClusterPrimary(/** @type {any} */ (members), options, () => []);
    }
    return holding.primary;
  }

  /** @returns {boolean} whether this process aggregates; if another one has taken over, it stops */
  #isCurrent() {
    const holding = this.#holding;
    if (holding === undefined) return false;
    if (this.#directory.isCurrent(holding.generation)) return true;
    if (this.#restore(holding)) return true;
    this.#stepDown();
    void this.#follow();
    return false;
  }

  /**
   * Creates the directory again after somebody has removed it: the numbers are still in memory.
   *
   * @param {Holding} holding
   * @returns {boolean} false if another process has taken over
   */
  #restore(holding) {
    try {
      this.#directory.open();
      const [newest = 0] = this.#directory.generations();
      if (newest > holding.generation) return false;
      if (!this.#directory.claim(holding.generation, this.#key)) return false;
      this.#onMembers(holding.members, holding.members.list);
      void this.#open().catch(error => debug('the socket cannot be restored: %s', error));
      return true;
    } catch (error) {
      debug('the directory cannot be restored: %s', error);
      return true;
    }
  }

  /** Another process aggregates. */
  #stepDown() {
    const holding = this.#holding;
    this.#holding = undefined;
    holding?.members.close();
    holding?.primary?.close().catch(error => debug('the aggregator does not end: %s', error));
  }

  /** Notices that another process has taken over, or that the directory was removed. */
  #check() {
    try {
      const isHolder = this.#isCurrent();
      if (!isHolder && this.#holder !== undefined) {
        const [newest] = this.#directory.generations();
        if (newest > this.#holder.generation) this.#holder.link.close();
      }
      if (!this.#isFollowing && !this.#directory.hasSocket(this.#key, this.#server !== undefined))
        void this.#open().catch(() => {});
      if (++this.#checks % FRESHEN_CHECKS === 0)
        this.#directory.freshen(this.#key, this.#holding?.generation);
    } catch (error) {
      debug('the directory cannot be read: %s', error);
    }
  }

  /** Another process may take over at this moment, and move the directory to which the snapshot goes. */
  #writeExitSnapshot() {
    for (let i = 0; i < MAX_EXIT_TRIES; i++) {
      const spool = this.#directory.spool();
      if (spool !== undefined && spool !== this.#spool) this.#aimAt(spool);
      this.#responder?.writeExitSnapshot();
      if (this.#directory.spool() === spool) return;
    }
  }

  /** @param {string} directory of snapshot files; '' ends checkpoints */
  #aimAt(directory) {
    this.#spool = directory;
    const exitName = this.#exitName;
    this.#responder?.receive({ type: WELCOME, directory, exitName, checkpointInterval: 0 });
  }

  /** In the process's last 'exit' listener. */
  #onExit() {
    this.#writeExitSnapshot();
    this.#directory.leave(this.#key);
  }
}

module.exports = { Group };
