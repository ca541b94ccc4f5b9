'use strict';

// Runs in the thread that serves the page. One thread that has joined, with references to everything that it
// shares. They are kept until the thread has ended: the aggregator may be lost, and the thread may be
// computing for ever and cannot send them again.

const { isSharedArrayBuffer } = require('node:util/types');
const { DEFAULT_LABELS } = require('../registry/metric-view');
const { checkChunk } = require('../source/shared-log');
const { HookRequests } = require('./hook-requests');
const { isTask } = require('./kernel-tasks');

/** @typedef {import('../source/thread-mirror').SharedParts} SharedParts */

class ThreadRecord {
  /** Whether the thread has published all that it had when it joined. */
  isPublished = false;
  /** @type {any[]} messages from its channel that were not applied yet */
  received = [];
  /** Whether the thread has left and does not answer. */
  hasLeft = false;
  /** @type {import('node:worker_threads').BroadcastChannel | undefined} to and from the thread */
  channel = undefined;
  /** @type {SharedArrayBuffer[]} */
  #chunks = [];
  /** @type {[number: number, memory: SharedArrayBuffer][]} */
  #memories = [];
  /** @type {Map<number, {name: string, get: () => Promise<void> | undefined}>} by number of the metric */
  #hooks = new Map();
  /** @type {SharedParts} */
  #unsent = {};
  /** Its hooks as custom metric objects, which have no values: whoever captures them has the hooks run. */
  registry = { [DEFAULT_LABELS]: {}, getMetricsAsArray: () => [...this.#hooks.values()] };

  /**
   * @param {number} number for the store: rises with each thread
   * @param {any} message with which it has joined, see thread-link.js
   * @param {ThreadRecord | undefined} former the former record of a thread that has joined again; shown until
   *   everything is published
   * @param {(message: object) => void} send to the thread
   */
  constructor(number, { thread, join, listening, threadId, task }, former, send) {
    checkChunk(join);
    this.number = number;
    this.id = thread;
    this.threadId = threadId;
    /** See ownTask(). */
    this.task = isTask(task) ? task : undefined;
    this.listening = new Int32Array(listening);
    this.former = former;
    this.hooks = new HookRequests(send);
    this.#chunks.push(join);
  }

  /**
   * @param {any} message
   * @throws {TypeError} if it is not valid
   */
  add({ chunk, memory, memoryNumber, hook, unhook }) {
    if (isSharedArrayBuffer(chunk)) {
      checkChunk(chunk);
      this.#chunks.push(chunk);
      (this.#unsent.chunks ??= []).push(chunk);
    }
    if (isSharedArrayBuffer(memory) && Number.isSafeInteger(memoryNumber)) {
      this.#memories.push([memoryNumber, memory]);
      (this.#unsent.memories ??= []).push([memoryNumber, memory]);
    }
    if (hook !== undefined) {
      const name = String(hook[1]);
      this.#hooks.set(hook[0], { name, get: () => this.hooks.collect(name) });
    }
    this.#hooks.delete(unhook);
  }

  /** @returns {SharedParts | undefined} what was not taken yet */
  takeUnsent() {
    const unsent = this.#unsent;
    this.#unsent = {};
    return Object.keys(unsent).length === 0 ? undefined : unsent;
  }

  /** @returns {SharedParts} */
  takeAll() {
    this.#unsent = {};
    return { chunks: [...this.#chunks], memories: [...this.#memories] };
  }

  /**
   * @param {number} number of a metric
   * @returns {(() => Promise<void> | undefined) | undefined} asks the thread to run the metric's hook;
   *   undefined if it has none
   */
  hookOf(number) {
    return this.#hooks.get(number)?.get;
  }
}

module.exports = { ThreadRecord };
