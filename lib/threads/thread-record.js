'use strict';

// Runs in the thread that serves the page. One thread that has joined, with references to everything that it
// shares. They are kept until the thread has ended: the aggregator may be lost, and the thread may be
// computing for ever and cannot send them again.

const { isSharedArrayBuffer } = require('node:util/types');
const { FailureCounts, COLLECT } = require('../source/failure-counts');
const { checkChunk } = require('../source/shared-log');
const { warnOfHook } = require('../source/source');
const { textOf } = require('../options/thrown');
const { HookRequests } = require('./hook-requests');
const { isTask } = require('./kernel-tasks');

const MAX_NAME_LENGTH = 1000;

/** @typedef {import('../store/thread-series').ThreadParts} ThreadParts */

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
  /** @type {Map<number, string>} names of metrics with hooks, by number */
  #hooked = new Map();
  #failures = new FailureCounts();
  /** @type {ThreadParts} */
  #unsent = {};

  /**
   * @param {number} number for the store: rises with each thread
   * @param {any} message with which it has joined, see thread-link.js
   * @param {ThreadRecord | undefined} former the former record of a thread that has joined again; shown until
   *   everything is published
   * @param {(message: object) => void} send to the thread
   * @param {(answered: boolean, hooksBegan?: number) => void} onSettled called when its hooks have run, or
   *   scrapes do not wait for them
   */
  constructor(number, { thread, join, listening, threadId, task }, former, send, onSettled) {
    checkChunk(join);
    this.number = number;
    this.id = thread;
    this.threadId = threadId;
    /** See ownTask(). */
    this.task = isTask(task) ? task : undefined;
    this.listening = new Int32Array(listening);
    this.former = former;
    this.hooks = new HookRequests(send, onSettled);
    this.#chunks.push(join);
  }

  /** Whether its event loop is needed for its metrics. */
  get hasHooks() {
    return this.#hooked.size > 0 && !this.hasLeft;
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
    if (hook !== undefined) this.#hooked.set(hook[0], String(hook[1]));
    this.#hooked.delete(unhook);
  }

  /** @returns {ThreadParts | undefined} what was not taken yet */
  takeUnsent() {
    const unsent = this.#unsent;
    this.#unsent = {};
    return Object.keys(unsent).length === 0 ? undefined : unsent;
  }

  /** @returns {ThreadParts} */
  takeAll() {
    this.#unsent = {};
    return {
      chunks: [...this.#chunks],
      memories: [...this.#memories],
      failures: this.#failures.entries,
    };
  }

  /**
   * @param {number} number of a metric
   * @returns {(() => Promise<void> | undefined) | undefined} asks the thread to run the metric's hook;
   *   undefined if it has none
   */
  hookOf(number) {
    const name = this.#hooked.get(number);
    return name === undefined ? undefined : () => this.hooks.collect(name);
  }

  /**
   * Counts failures of hooks.
   *
   * @param {Iterable<[name: unknown, reason: unknown]>} failed
   */
  countFailures(failed) {
    for (const [metric, reason] of failed) {
      const name = String(metric).slice(0, MAX_NAME_LENGTH);
      this.#failures.add(COLLECT, name);
      warnOfHook(name, new Error(`in a thread, ${textOf(reason)}`));
      this.#unsent.failures = this.#failures.entries;
    }
  }

  /** @param {string} reason why no hook has ended */
  countAllFailures(reason) {
    this.countFailures(Array.from(this.#hooked.values(), name => [name, reason]));
  }
}

module.exports = { ThreadRecord };
