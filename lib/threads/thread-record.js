'use strict';

// Runs in the thread that serves the page. One thread that has joined, with references to everything that it
// shares. They are kept until the thread has ended: the aggregator may be lost, and the thread may be
// computing for ever and cannot send them again.

const { DEFAULT_LABELS } = require('../registry/metric-view');
const { HookRequests } = require('./hook-requests');

/** @typedef {import('../source/thread-mirror').SharedParts} SharedParts */

class ThreadRecord {
  /** @type {any[]} messages from its channel that were not applied yet */
  received = [];
  /** Whether the thread has left and does not answer. */
  hasLeft = false;
  /** @type {import('node:worker_threads').BroadcastChannel | undefined} to and from the thread */
  channel = undefined;
  /** @type {import('../source/thread-mirror').ThreadMirror | undefined} of a member's MemberThreads */
  mirror = undefined;
  /** @type {Required<SharedParts>} */
  #parts = { chunks: [], memories: [] };
  /** @type {Map<number, {name: string, get: () => Promise<void> | undefined}>} by number of the metric */
  #hooks = new Map();
  /** Its hooks as custom metric objects, which have no values: whoever captures them has the hooks run. */
  registry = { [DEFAULT_LABELS]: {}, getMetricsAsArray: () => [...this.#hooks.values()] };

  /**
   * @param {number} number for the store: rises with each thread
   * @param {any} message with which it has joined, see thread-link.js
   * @param {(message: object) => void} send to the thread
   */
  constructor(number, { thread, listening, threadId, task }, send) {
    this.number = number;
    this.id = thread;
    this.threadId = threadId;
    /** See ownTask(). */
    this.task = task;
    this.listening = listening;
    this.hooks = new HookRequests(send);
  }

  /**
   * All that it has sent. A copy: an aggregator in place reads it later, and gets what follows as well.
   *
   * @returns {Required<SharedParts>}
   */
  get parts() {
    return { chunks: [...this.#parts.chunks], memories: [...this.#parts.memories] };
  }

  /** @param {any} message */
  add({ parts: { chunks = [], memories = [] } = {}, hooks = [], unhook }) {
    this.#parts.chunks.push(...chunks);
    this.#parts.memories.push(...memories);
    for (const [number, name] of hooks)
      this.#hooks.set(number, { name, get: () => this.hooks.collect(name) });
    this.#hooks.delete(unhook);
  }
}

module.exports = { ThreadRecord };
