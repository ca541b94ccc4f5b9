'use strict';

// Runs in the thread that serves the page, usually the main thread. Follows the threads of the process that
// take part. Their registries, and what ended threads had counted, are further registries of this process,
// for its own page and for a cluster's.

const diagnosticsChannel = require('node:diagnostics_channel');
const { debuglog } = require('node:util');
const { isSharedArrayBuffer } = require('node:util/types');
const worker = require('node:worker_threads');
const { runInSlices, runThrough } = require('../event-loop/slices');
const { replaceCurrent, leaveCurrent } = require('../event-loop/current');
const { HookRequests } = require('./hook-requests');
const { ThreadMirror } = require('./thread-mirror');
const { EndedThreads } = require('./ended-threads');
const { ownTask, isTask, isRunning } = require('./kernel-tasks');
const { SCOPE, LISTENER_BYTES, scopeOf, inboxOf, helloOf, channelOf } = require('./thread-messages');

const debug = debuglog('prom-client-cluster');

/** Also where `process` is a copy without events, as in Jest. */
const THREAD_CREATED = 'worker_threads';

/**
 * @typedef {object} ThreadRecord
 * @property {string} id
 * @property {number} threadId
 * @property {string | undefined} task see ownTask()
 * @property {ThreadMirror} mirror
 * @property {Int32Array} listening see LISTENER_BYTES
 * @property {boolean} isPublished whether the thread has published all that it had when it joined
 * @property {ThreadRecord | undefined} former of a thread that takes part again; shown until all is published
 * @property {import('node:worker_threads').BroadcastChannel} channel
 * @property {HookRequests} hooks
 * @property {boolean} hasLeft whether it takes part no more, and answers nothing
 */

class ThreadHub {
  #onJoined;
  #scope;
  #inbox;
  /** @type {Map<string, ThreadRecord>} by id, in the order in which they joined */
  #threads = new Map();
  #ended;
  /**
   * Threads whose end is reported, by id. Weak: they may have ended although this hub got no event.
   *
   * @type {Map<number, WeakRef<import('node:worker_threads').Worker>>}
   */
  #followed = new Map();
  #isReading = false;
  #isMerging = false;
  /** Whether the registries are on the page of a cluster or group. */
  #isMember = false;
  #isClosed = false;

  /**
   * @param {{retiredMaxAge?: number}} options see EndedThreads
   * @param {() => void} [onJoined] called when a thread has joined
   * @throws {Error} in another runtime than Node.js
   */
  constructor({ retiredMaxAge }, onJoined) {
    this.#onJoined = onJoined;
    this.#ended = new EndedThreads(retiredMaxAge);
    // A hub of another thread (of a test runner, for example) is that of the threads below it only.
    const own = `.${worker.threadId}`;
    if (!worker.isMainThread && !scopeOf().endsWith(own)) worker.setEnvironmentData(SCOPE, scopeOf() + own);
    this.#scope = scopeOf();
    this.#inbox = this.#listen(inboxOf(this.#scope), message => this.#receive(message));
    this.#checkRuntime();
    replaceCurrent(worker, this);
    process.on('worker', this.#follow);
    diagnosticsChannel.subscribe(THREAD_CREATED, this.#onThread);
    // Threads that joined before there was a hub do so again.
    const hello = new worker.BroadcastChannel(helloOf(this.#scope));
    hello.postMessage('hello');
    hello.close();
  }

  /** @throws {Error} in a runtime, such as Deno, that does not read a channel when it is asked to */
  #checkRuntime() {
    try {
      this.#takeInbox();
    } catch (cause) {
      this.#inbox.close();
      throw new Error('WorkerRegistry needs Node.js: this runtime cannot read a BroadcastChannel', { cause });
    }
  }

  /** How many threads take part. */
  get count() {
    this.#receiveAll();
    return [...this.#threads.values()].filter(({ isPublished, hasLeft }) => isPublished && !hasLeft).length;
  }

  /** @returns {any[]} as they are now */
  registries() {
    this.#receiveAll();
    for (const { mirror } of this.#threads.values()) runThrough(mirror.read());
    // Those of living threads first: if two metrics of one name have different types, the first is shown.
    return [...this.#liveRegistries(), ...this.#ended.registries];
  }

  /** @returns {any[]} the same, for the page of a cluster or group */
  registriesOfMember() {
    this.#isMember = true;
    return this.registries();
  }

  /** @returns {any[]} */
  #liveRegistries() {
    const shown = [...this.#threads.values()].filter(({ isPublished }) => isPublished);
    return shown.flatMap(({ mirror }) => mirror.registries);
  }

  close() {
    this.#isClosed = true;
    leaveCurrent(worker, this);
    process.removeListener('worker', this.#follow);
    diagnosticsChannel.unsubscribe(THREAD_CREATED, this.#onThread);
    this.#inbox.close();
    for (const record of this.#threads.values()) this.#remove(record);
  }

  #onThread = (/** @type {any} */ message) => this.#follow(message.worker);

  /** @param {import('node:worker_threads').Worker} thread */
  #follow = thread => {
    const { threadId } = thread;
    if (this.#isClosed || this.#followed.has(threadId)) return;
    this.#followed.set(threadId, new WeakRef(thread));
    thread.once('exit', () => {
      this.#receiveAll();
      this.#followed.delete(threadId);
      // A closed hub has none.
      for (const record of this.#threads.values()) if (record.threadId === threadId) this.#retire(record);
    });
  };

  /** Takes all messages that have not been delivered yet, and finds the threads that have ended. */
  #receiveAll() {
    if (this.#isClosed) return;
    this.#takeAll();
    const ended = [...this.#threads.values()].filter(record => this.#hasEnded(record));
    if (ended.length === 0) return;
    // What they had sent before.
    this.#takeAll();
    for (const record of ended) {
      this.#followed.delete(record.threadId);
      this.#retire(record);
    }
  }

  #takeAll() {
    this.#takeInbox();
    for (const record of this.#threads.values()) this.#applyInOrder(record, messagesOf(record.channel));
  }

  #takeInbox() {
    for (const message of messagesOf(this.#inbox)) this.#receive(message);
  }

  /**
   * @param {ThreadRecord} record
   * @param {any[]} messages from its channel
   */
  #applyInOrder(record, messages) {
    // What the thread has sent before it used the channel is there.
    if (messages.length > 0) this.#takeInbox();
    for (const message of messages) this.#apply(record, message);
  }

  /**
   * @param {ThreadRecord} record
   * @returns {boolean} whether the end of the thread is reported, or the system shows it
   */
  #isEndSeen({ task, threadId }) {
    return this.#followed.has(threadId) || (task !== undefined && ownTask() !== undefined);
  }

  /**
   * @param {ThreadRecord} record
   * @returns {boolean} whether a thread has ended that was created before this hub, or by another thread:
   *   nothing reports the end of these; or whose 'exit' listener the program has removed
   */
  #hasEnded({ task, threadId }) {
    const followed = this.#followed.get(threadId);
    // A Worker has no id any more when it has ended.
    if (followed !== undefined) return followed.deref()?.threadId !== threadId;
    if (task === undefined) return false;
    // It has not if the system does not show this thread either.
    return !isRunning(task) && ownTask() !== undefined;
  }

  /** @param {any} message in the inbox */
  #receive(message) {
    try {
      if (typeof message?.thread !== 'string') return;
      if (message.join !== undefined) this.#add(message);
      const record = this.#threads.get(message.thread);
      if (record !== undefined) this.#apply(record, message);
    } catch (error) {
      debug('a message of a thread is not valid: %O', error);
    }
  }

  /** @param {any} message */
  #add({ thread: id, join, listening, threadId, task, previous }) {
    const isValid =
      isSharedArrayBuffer(join) && isSharedArrayBuffer(listening) && listening.byteLength === LISTENER_BYTES;
    if (!isValid || !Number.isSafeInteger(threadId) || this.#threads.has(id)) return;
    // This thread's own registries are shown in any case.
    if (threadId === worker.threadId) return;
    // First, because the log may be none.
    const mirror = new ThreadMirror(join, name => record.hooks.collect(name));
    const channel = this.#listen(channelOf(id), message => this.#applyInOrder(record, [message]));
    /** @type {ThreadRecord} */
    const record = {
      id,
      threadId,
      task: isTask(task) ? task : undefined,
      mirror,
      listening: new Int32Array(listening),
      channel,
      isPublished: false,
      former: this.#threads.get(previous),
      hooks: new HookRequests(message => channel.postMessage(message)),
      hasLeft: false,
    };
    this.#threads.set(id, record);
    // Until then, the thread posts to the inbox.
    Atomics.store(record.listening, 0, 1);
    this.#onJoined?.();
  }

  /**
   * @param {ThreadRecord} record
   * @param {any} message
   */
  #apply(record, message) {
    try {
      const { mirror, hooks } = record;
      const { chunk, memory, memoryNumber, published, left, ended } = message;
      const { started, customs, answer, failed } = message;
      if (isSharedArrayBuffer(chunk)) mirror.addChunk(chunk);
      if (isSharedArrayBuffer(memory)) mirror.addMemory(memoryNumber, memory);
      if (hooks.isCurrent(started)) hooks.started();
      if (customs !== undefined) mirror.addCustoms(customs);
      if (published === true) this.#onPublished(record);
      if (left === true) this.#onLeft(record);
      if (hooks.isCurrent(answer)) this.#onAnswer(record, answer, new Map(failed));
      // It answers no request any more.
      if (ended === true) hooks.end();
      // It may still count, in its 'exit' listeners.
      if (ended === true && !this.#isEndSeen(record)) this.#retire(record);
      else this.#readSoon();
    } catch (error) {
      debug('a message of a thread is not valid: %O', error);
    }
  }

  /** @param {ThreadRecord} record of a thread that publishes nothing any more, and answers no request */
  #onLeft(record) {
    record.hasLeft = true;
    // It may have failed before it had published all. Then its former numbers are nearer to all.
    record.isPublished ||= record.former === undefined;
    record.hooks.end();
  }

  /** @param {ThreadRecord} record */
  #onPublished(record) {
    record.isPublished = true;
    for (let { former } = record; former !== undefined; former = former.former) this.#remove(former);
    record.former = undefined;
  }

  /**
   * @param {ThreadRecord} record whose hooks have run
   * @param {string} request its id
   * @param {Map<unknown, unknown>} failed why, by metric
   */
  async #onAnswer({ mirror, hooks }, request, failed) {
    // What they have recorded, and what was sent before the answer.
    await runInSlices(mirror.read());
    if (hooks.isCurrent(request)) hooks.settle(failed);
  }

  /** Reads the logs, so that a scrape has little left to read. */
  async #readSoon() {
    if (this.#isReading) return;
    this.#isReading = true;
    // Not in this turn's loop over messages: it would apply newer messages before the rest of them.
    await undefined;
    try {
      await this.readInSlices(Infinity);
    } catch (error) {
      debug('what threads have published cannot be read: %O', error);
    }
    this.#isReading = false;
  }

  /**
   * Reads what the threads have published, in slices: many label sets would hold the loop for long.
   *
   * @param {number} timeout milliseconds; a thread may publish more than is read meanwhile
   * @returns {Promise<void>}
   */
  async readInSlices(timeout) {
    this.#receiveAll();
    if (this.#ended.mirrors.length > 0) void this.#mergeSoon();
    const end = performance.now() + timeout;
    const mirrors = Array.from(this.#threads.values(), ({ mirror }) => mirror);
    for (const mirror of [...mirrors, ...this.#ended.mirrors]) await runInSlices(until(mirror.read(), end));
  }

  /**
   * Drops totals of ended threads that are too old, in slices. Not if they are part of sums over several
   * processes: these sums would fall, and Prometheus would take that for a reset.
   *
   * @param {Iterable<any>} own registries of this thread
   */
  async expire(own) {
    if (!this.#isMember) await runInSlices(this.#ended.expire([...own, ...this.#liveRegistries()]));
  }

  /** @param {ThreadRecord} record of a thread that has ended */
  #retire(record) {
    if (this.#threads.get(record.id) !== record) return;
    this.#remove(record);
    if (record.isPublished || record.former === undefined) this.#ended.add(record.mirror);
    else this.#retire(record.former);
    this.#mergeSoon();
  }

  async #mergeSoon() {
    if (this.#isMerging) return;
    this.#isMerging = true;
    try {
      await runInSlices(this.#ended.merge());
    } catch (error) {
      debug('what a thread has counted cannot be added up: %O', error);
    }
    this.#isMerging = false;
  }

  /** @param {ThreadRecord} record */
  #remove(record) {
    record.hooks.end();
    this.#threads.delete(record.id);
    Atomics.store(record.listening, 0, 0);
    record.channel.close();
  }

  /**
   * @param {string} name
   * @param {(message: any) => void} onMessage
   */
  #listen(name, onMessage) {
    const channel = new worker.BroadcastChannel(name);
    channel.onmessage = (/** @type {any} */ event) => onMessage(event.data);
    /** @type {any} */ (channel).unref();
    return channel;
  }
}

/**
 * @param {import('node:worker_threads').BroadcastChannel} channel
 * @returns {any[]} those that have not been delivered yet. All at once, because the last one of a thread
 *   closes its channel
 */
function messagesOf(channel) {
  const messages = [];
  for (let received; (received = worker.receiveMessageOnPort(/** @type {any} */ (channel))) !== undefined;)
    messages.push(received.message);
  return messages;
}

/**
 * @param {Generator<void>} steps
 * @param {number} end by performance.now()
 * @returns {Generator<void>} the steps until then
 */
function* until(steps, end) {
  while (performance.now() < end && !steps.next().done) yield;
}

module.exports = { ThreadHub };
