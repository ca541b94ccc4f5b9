'use strict';

// Runs in the process that aggregates a group, on its event loop. The group's members, as ClusterPrimary
// follows them. A member that has lost its link is not dead: it is dead when nobody listens on its socket.
// Until then it keeps its id, and scrapes show its last numbers.

const { EventEmitter } = require('node:events');
const { SocketLink } = require('../links/socket');
const { HELLO, PING, PAGE, hasType } = require('../wire/messages');
const { isKey } = require('./group-names');
const { unref } = require('../../event-loop/timers');
const { debug } = require('../../options/debug-log');

// A process that has connected introduces itself within this time.
const HELLO_MILLISECONDS = 5000;
const MAX_STRANGERS = 100;
const MAX_MEMBERS = 10_000;
const MAX_DEAD = 10_000;

// How often it is tried whether a member without a link lives.
const PROBE_MILLISECONDS = 250;

// How long scrapes wait for members that have not found the new holder yet.
const SETTLE_MILLISECONDS = 1000;

/** A member, with the interface of a worker of `node:cluster`. */
class Member {
  /** @type {SocketLink | undefined} */
  link = undefined;
  isGone = false;
  #isCurrent;

  /**
   * @param {number} id
   * @param {string} key
   * @param {() => boolean} isCurrent whether this process still aggregates; if not, it closes the links
   */
  constructor(id, key, isCurrent) {
    this.id = id;
    this.key = key;
    this.#isCurrent = isCurrent;
    /** @type {{pid?: number}} */
    this.process = {};
  }

  isConnected() {
    return this.link?.isConnected === true;
  }

  isDead() {
    return this.isGone;
  }

  /**
   * @param {object} message
   * @param {(error: Error | null) => void} onSent
   */
  send(message, onSent) {
    // While this process was stopped, another one may have taken over, whose pages have newer numbers.
    if (hasType(message) && message.type === PAGE && 'pageId' in message) this.#isCurrent();
    if (this.link === undefined) onSent(new Error('the member has no link'));
    else this.link.send(message, onSent);
  }
}

class GroupMembers extends EventEmitter {
  #isAlive;
  #onDead;
  #onChange;
  #isCurrent;
  #next;
  /** Smaller ids were given before, to `list` and to members that have died. */
  #first;
  /** @type {Map<number, string>} keys of members that have died meanwhile, by id */
  #dead = new Map();
  /** By performance.now(). */
  #settlesAt = performance.now() + SETTLE_MILLISECONDS;
  /** @type {Set<SocketLink>} connected, not introduced yet */
  #strangers = new Set();
  /** @type {NodeJS.Timeout | undefined} while a member has no link */
  #probeTimer = undefined;
  #isClosed = false;

  /**
   * @param {object} options
   * @param {import('./generation').MemberList} options.list members of earlier generations that live
   * @param {string} [options.silent] key of one that does not answer, for which no scrape waits
   * @param {(key: string) => Promise<boolean>} options.isAlive
   * @param {(key: string) => void} options.onDead
   * @param {() => boolean} options.isCurrent whether this process still aggregates; if not, it closes the
   *   links
   * @param {(list: import('./generation').MemberList) => void} options.onChange called when a member
   *   has joined or left
   */
  constructor({ list, silent, isAlive, onDead, isCurrent, onChange }) {
    super();
    this.#onDead = onDead;
    this.#isCurrent = isCurrent;
    this.#isAlive = isAlive;
    this.#onChange = onChange;
    this.#next = this.#first = list.next;
    /** @type {Record<number, Member>} by id */
    this.workers = {};
    for (const [id, key] of list.keys) this.workers[id] = new Member(id, key, isCurrent);
    /** Settles when all of them are linked again, or after a second: one may be stopped. */
    this.settled = this.#settle(silent);
    for (const member of this.#all) void this.#probe(member);
  }

  /** @returns {Member[]} */
  get #all() {
    return Object.values(this.workers);
  }

  get count() {
    return this.#all.length;
  }

  /**
   * @param {string} key
   * @returns {number | undefined} undefined if it is no member
   */
  idOf(key) {
    return this.#all.find(member => member.key === key)?.id;
  }

  /** @param {string} key */
  hasOthersThan(key) {
    return this.#all.some(member => member.key !== key);
  }

  /** @param {string | undefined} silent */
  async #settle(silent) {
    const isAwaited = () => this.#all.some(member => !member.isConnected() && member.key !== silent);
    while (isAwaited() && performance.now() < this.#settlesAt && !this.#isClosed)
      await new Promise(resolve => setTimeout(resolve, 10));
  }

  /** @param {import('node:net').Socket} socket of a process that has connected */
  accept(socket) {
    if (this.#isClosed || this.#strangers.size >= MAX_STRANGERS) {
      socket.destroy();
      return;
    }
    /** @type {Member | undefined} */
    let member;
    const link = new SocketLink(socket, {
      onMessage: message => {
        if (member === undefined) member = this.#introduce(link, message);
        else this.#receive(member, message);
      },
      onEnd: () => {
        clearTimeout(timer);
        this.#strangers.delete(link);
        if (member?.link !== link) return;
        member.link = undefined;
        if (!this.#isClosed) void this.#probe(member);
      },
    });
    this.#strangers.add(link);
    const timer = unref(setTimeout(() => this.#strangers.has(link) && link.close(), HELLO_MILLISECONDS));
  }

  /**
   * @param {SocketLink} link
   * @param {any} message its first one
   * @returns {Member | undefined}
   */
  #introduce(link, message) {
    this.#strangers.delete(link);
    const { type, key, id, pid } = hasType(message) ? /** @type {any} */ (message) : {};
    const member = type === HELLO && isKey(key) ? this.#memberOf(key, id) : undefined;
    if (member === undefined) {
      link.close();
      return undefined;
    }
    const isNew = this.workers[member.id] === undefined;
    this.workers[member.id] = member;
    const earlier = member.link;
    member.link = link;
    earlier?.close();
    link.trust();
    member.process.pid = Number.isSafeInteger(pid) ? pid : undefined;
    if (isNew) this.#onChange(this.list);
    link.send({ type: HELLO, id: member.id });
    if (isNew) this.emit('fork', member);
    this.emit('online', member);
    return member;
  }

  /**
   * @param {string} key
   * @param {unknown} id that the process had before
   * @returns {Member | undefined}
   */
  #memberOf(key, id) {
    const known = this.#all.find(member => member.key === key);
    if (known !== undefined) return known;
    if (this.count >= MAX_MEMBERS) return undefined;
    const wanted =
      Number.isSafeInteger(id) && Number(id) > 0 && Number(id) < 2 ** 31 ? Number(id) : this.#next;
    const owner = this.workers[wanted];
    if (owner?.key === '') {
      owner.key = key;
      return owner;
    }
    const given = owner === undefined && this.#isFree(wanted, key) ? wanted : this.#next;
    this.#next = Math.max(this.#next, given + 1);
    return new Member(given, key, this.#isCurrent);
  }

  /**
   * @param {number} id
   * @param {string} key of the process that had it, possibly in a group that has been another one until now
   */
  #isFree(id, key) {
    return id >= this.#first && (this.#dead.get(id) ?? key) === key;
  }

  /** @returns {import('./generation').MemberList} */
  get list() {
    return { next: this.#next, keys: new Map(this.#all.map(({ id, key }) => [id, key])) };
  }

  /**
   * @param {Member} member
   * @param {unknown} message
   */
  #receive(member, message) {
    if (!this.#isCurrent()) return;
    if (hasType(message) && message.type === PING) member.link?.send({ type: PING });
    else if (hasType(message) && message.type === PAGE)
      void this.settled.then(() => this.emit('message', member, message));
    else this.emit('message', member, message);
  }

  #probeLater() {
    if (this.#isClosed || this.#probeTimer !== undefined) return;
    if (this.#all.every(member => member.link !== undefined)) return;
    this.#probeTimer = unref(
      setTimeout(() => {
        this.#probeTimer = undefined;
        for (const member of this.#all) if (member.link === undefined) void this.#probe(member);
      }, PROBE_MILLISECONDS),
    );
  }

  /**
   * Retires a member without a link if it is dead, or tries again later.
   *
   * @param {Member} member
   */
  async #probe(member) {
    // Without a key: the list of members could not be written, or it has died and is not retired yet.
    const isAlive = member.key === '' ? performance.now() < this.#settlesAt : await this.#isAlive(member.key);
    if (this.#isClosed || member.link !== undefined || member.isGone) return;
    if (isAlive) {
      this.#probeLater();
      return;
    }
    debug('member %d is dead', member.id);
    member.isGone = true;
    delete this.workers[member.id];
    this.#dead.set(member.id, member.key);
    if (this.#dead.size > MAX_DEAD) this.#dead.delete(/** @type {number} */ (this.#dead.keys().next().value));
    this.#onDead(member.key);
    this.#onChange(this.list);
    this.emit('disconnect', member);
  }

  /** Ends all links: this process does not aggregate any more. */
  close() {
    this.#isClosed = true;
    clearTimeout(this.#probeTimer);
    for (const link of [...this.#strangers, ...this.#all.map(({ link }) => link)]) link?.close();
  }
}

module.exports = { GroupMembers };
