'use strict';

// Runs in the process that leads a group, on its event loop. The group's members, as ClusterPrimary follows
// them. A member without a link is not dead: it is dead when nobody listens on its socket. Until then scrapes
// show its last numbers.

const { EventEmitter } = require('node:events');
const { SocketLink } = require('../links/socket');
const { HELLO, PING, PAGE, hasType } = require('../wire/messages');
const { isId } = require('./group-names');
const { unref } = require('../../event-loop/timers');
const { debug } = require('../../options/debug-log');

// How often a member without a link is probed.
const PROBE_MILLISECONDS = 250;

// How long scrapes wait for members that have not found the new leader yet.
const SETTLE_MILLISECONDS = 1000;

/**
 * Sends messages to a member: a SocketLink or, for this process itself, direct calls.
 *
 * @typedef {Pick<SocketLink, 'isConnected' | 'send' | 'close'>} MemberLink
 */

/** A member, with the interface of a worker of `node:cluster`. */
class Member {
  /** @type {MemberLink | undefined} */
  link = undefined;
  isGone = false;
  #isCurrent;

  /**
   * @param {number} id
   * @param {() => boolean} isCurrent whether this process still leads; if not, it closes the links
   */
  constructor(id, isCurrent) {
    this.id = id;
    this.#isCurrent = isCurrent;
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
  #directory;
  #isCurrent;
  /** @type {Set<SocketLink>} */
  #links = new Set();
  /** @type {NodeJS.Timeout | undefined} while a member has no link */
  #probeTimer = undefined;
  #isClosed = false;

  /**
   * @param {object} options
   * @param {number[]} options.ids of processes that have snapshot files
   * @param {number} [options.unresponsive] id of a process that does not answer; no scrape waits for it
   * @param {Pick<import('./group-directory').GroupDirectory, 'isAlive' | 'removeSocket'>} options.directory
   * @param {() => boolean} options.isCurrent whether this process still leads; if not, it closes the links
   */
  constructor({ ids, unresponsive, directory, isCurrent }) {
    super();
    this.#directory = directory;
    this.#isCurrent = isCurrent;
    /** @type {Record<number, Member>} by id */
    this.workers = {};
    for (const id of ids) this.workers[id] = new Member(id, isCurrent);
    /** Settles when all of them are linked, or after a second, because one of them may be stopped. */
    this.settled = this.#settle(unresponsive);
    for (const member of this.#all) void this.#probe(member);
  }

  /** @returns {Member[]} */
  get #all() {
    return Object.values(this.workers);
  }

  get count() {
    return this.#all.length;
  }

  /** @param {number | undefined} unresponsive */
  async #settle(unresponsive) {
    const end = performance.now() + SETTLE_MILLISECONDS;
    const isAwaited = () => this.#all.some(member => !member.isConnected() && member.id !== unresponsive);
    while (isAwaited() && performance.now() < end && !this.#isClosed)
      await new Promise(resolve => setTimeout(resolve, 10));
  }

  /** @param {import('node:net').Socket} socket of a process that has connected */
  accept(socket) {
    /** @type {Member | undefined} */
    let member;
    const link = new SocketLink(socket, {
      onMessage: message => {
        const { type, id } = hasType(message) ? /** @type {any} */ (message) : {};
        if (member !== undefined) this.receive(member, message);
        else if (type === HELLO && isId(id)) member = this.join(id, link);
        else link.close();
      },
      onEnd: () => {
        this.#links.delete(link);
        if (member?.link !== link) return;
        member.link = undefined;
        if (!this.#isClosed) void this.#probe(member);
      },
    });
    this.#links.add(link);
  }

  /**
   * @param {number} id
   * @param {MemberLink} link
   * @returns {Member}
   */
  join(id, link) {
    const isNew = this.workers[id] === undefined;
    const member = (this.workers[id] ??= new Member(id, this.#isCurrent));
    const earlier = member.link;
    member.link = link;
    earlier?.close();
    if (isNew) this.emit('fork', member);
    this.emit('online', member);
    return member;
  }

  /**
   * @param {Member} member
   * @param {unknown} message
   */
  receive(member, message) {
    const type = hasType(message) ? message.type : undefined;
    // The sender waits for an answer, but another process may have taken over while this one was stopped.
    if ((type === PING || type === PAGE) && !this.#isCurrent()) return;
    if (type === PING) member.link?.send({ type: PING });
    else this.emit('message', member, message);
  }

  #probeLater() {
    if (this.#isClosed || this.#probeTimer !== undefined) return;
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
    const isAlive = await this.#directory.isAlive(member.id);
    if (this.#isClosed || member.link !== undefined || member.isGone) return;
    if (isAlive) {
      this.#probeLater();
      return;
    }
    debug('member %d is dead', member.id);
    member.isGone = true;
    delete this.workers[member.id];
    this.#directory.removeSocket(member.id);
    this.emit('disconnect', member);
  }

  /** Ends all links: this process does not lead any more. */
  close() {
    this.#isClosed = true;
    clearTimeout(this.#probeTimer);
    for (const link of this.#links) link.close();
  }
}

module.exports = { GroupMembers };
