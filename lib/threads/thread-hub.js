'use strict';

// Runs in the thread that serves the page, usually the main thread. Follows the threads of the process that
// have joined, and passes on references to the memory they share: to the aggregator or, in a member of a
// cluster or group, to MemberThreads. The hub itself does not read what threads have recorded.

const diagnosticsChannel = require('node:diagnostics_channel');
const worker = require('node:worker_threads');
const { replaceCurrent, leaveCurrent } = require('../event-loop/current');
const { debug } = require('../options/debug-log');
const { ThreadRecord } = require('./thread-record');
const { MemberThreads } = require('./member-threads');
const { ownTask, isRunning } = require('./kernel-tasks');
const { SCOPE, scopeOf, inboxOf, helloOf, channelOf, listen } = require('./thread-messages');

const THREAD_CREATED = 'worker_threads';

/** @typedef {import('../cluster/primary/cluster-primary').ClusterPrimary} ClusterPrimary */
/** @typedef {import('../source/thread-mirror').SharedParts} SharedParts */

/** @typedef {import('../cluster/primary/cluster-primary').ProcessThreads} ProcessThreads */

/** @implements {ProcessThreads} */
class ThreadHub {
  #primary;
  #isMember;
  #inbox;
  /** @type {Map<string, ThreadRecord>} by id, in the order in which they joined */
  #threads = new Map();
  /** @type {Map<number, ThreadRecord>} ended, and not part of the aggregator's totals yet */
  #ended = new Map();
  #nextNumber = 1;
  /**
   * Threads whose end is reported by an event, by id. Weak, because a thread may have ended without this hub
   * getting the event.
   *
   * @type {Map<number, WeakRef<import('node:worker_threads').Worker>>}
   */
  #followed = new Map();
  /**
   * Whether the aggregator reads the threads; undefined while there are none.
   *
   * @type {boolean | undefined}
   */
  #isAggregated = undefined;
  /** @type {MemberThreads | undefined} of a member */
  #members = undefined;
  #isClosed = false;

  /**
   * @param {() => ClusterPrimary | undefined} primary
   * @param {() => boolean} isMember whether the numbers of this process go to another one
   * @throws {Error} in another runtime than Node.js
   */
  constructor(primary, isMember) {
    this.#primary = primary;
    this.#isMember = isMember;
    // The hub of another thread (of a test runner, for example) serves only the threads that this thread
    // starts.
    const own = `.${worker.threadId}`;
    if (!worker.isMainThread && !scopeOf().endsWith(own)) worker.setEnvironmentData(SCOPE, scopeOf() + own);
    const scope = scopeOf();
    this.#inbox = listen(inboxOf(scope), message => this.#receive(message));
    this.#checkRuntime();
    replaceCurrent(worker, this);
    diagnosticsChannel.subscribe(THREAD_CREATED, this.#onThread);
    // Threads that joined before there was a hub do so again.
    const hello = new worker.BroadcastChannel(helloOf(scope));
    hello.postMessage('hello');
    hello.close();
  }

  /** @throws {Error} in a runtime, such as Deno, that cannot read a channel synchronously */
  #checkRuntime() {
    try {
      this.#takeInbox();
    } catch (cause) {
      this.#inbox.close();
      throw new Error('WorkerRegistry needs Node.js: this runtime cannot read a BroadcastChannel', { cause });
    }
  }

  /** How many threads have joined. */
  get count() {
    this.receiveAll();
    return [...this.#threads.values()].filter(({ hasLeft }) => !hasLeft).length;
  }

  /** Whether no thread has ever been shown. */
  get isEmpty() {
    this.receiveAll();
    return this.#isAggregated === undefined;
  }

  /**
   * @returns {any[]} registries for the page of this process: of a member's threads as they are now; else, as
   *   the aggregator reads the threads, those that have their hooks run
   */
  registries() {
    return this.#isAggregated === false ? this.registriesOfMember() : this.#hookRegistries;
  }

  get #hookRegistries() {
    return Array.from(this.#threads.values(), ({ registry }) => registry);
  }

  /** @returns {any[]} current registries of the threads, for the page of a cluster or group */
  registriesOfMember() {
    this.receiveAll();
    if (this.#members === undefined) {
      this.#members = new MemberThreads();
      for (const record of this.#threads.values()) this.#members.share(record, record.parts);
    }
    return [...this.#members.registries, ...this.#hookRegistries];
  }

  /** Sends everything that threads share to a new aggregator. */
  share() {
    // Not to MemberThreads, which have it: they would read it twice.
    if (this.#isAggregated)
      for (const record of [...this.#ended.values(), ...this.#threads.values()])
        this.#send(record, record.parts);
  }

  /** @returns {number[]} numbers of the threads that the aggregator shows */
  shown() {
    return this.#isAggregated ? Array.from(this.#threads.values(), ({ number }) => number) : [];
  }

  /** @param {number[]} numbers of threads whose counts are part of the totals */
  retired(numbers) {
    for (const number of numbers) this.#ended.delete(number);
  }

  close() {
    this.#isClosed = true;
    leaveCurrent(worker, this);
    diagnosticsChannel.unsubscribe(THREAD_CREATED, this.#onThread);
    this.#inbox.close();
    for (const record of this.#threads.values()) this.#remove(record);
  }

  #onThread = (/** @type {any} */ { worker: thread }) => {
    const { threadId } = thread;
    this.#followed.set(threadId, new WeakRef(thread));
    thread.once('exit', () => {
      this.receiveAll();
      this.#followed.delete(threadId);
    });
  };

  /** Takes all messages that have not been delivered yet, and notices the threads that have ended. */
  receiveAll() {
    if (this.#isClosed) return;
    this.#takeAll();
    const ended = [...this.#threads.values()].filter(record => this.#hasEnded(record));
    // Includes what they had sent before their end.
    if (ended.length > 0) this.#takeAll();
    for (const record of ended) this.#end(record);
  }

  #takeAll() {
    this.#takeInbox();
    for (const record of this.#threads.values())
      this.#applyInOrder(record, messagesOf(/** @type {any} */ (record.channel)));
  }

  #takeInbox() {
    for (const message of messagesOf(this.#inbox)) this.#receive(message);
  }

  /**
   * @param {ThreadRecord} record
   * @param {any[]} messages from its channel
   */
  #applyInOrder(record, messages) {
    record.received.push(...messages);
    // Messages that the thread sent before it used the channel are in the inbox.
    if (messages.length > 0) this.#takeInbox();
    this.#applyReceived(record);
  }

  /** @param {ThreadRecord} record */
  #applyReceived(record) {
    for (let message; (message = record.received.shift()) !== undefined;) this.#apply(record, message);
  }

  /**
   * @param {ThreadRecord} record
   * @returns {boolean | undefined} whether the thread has ended. No event reports this for threads that were
   *   created before this hub or by another thread, or if the program has removed the 'exit' listener.
   *   undefined if the system does not show it either
   */
  #hasEnded({ task, threadId }) {
    const followed = this.#followed.get(threadId);
    // A Worker that has ended has no id any more.
    if (followed !== undefined) return followed.deref()?.threadId !== threadId;
    if (task === undefined) return undefined;
    if (isRunning(task)) return false;
    // Inconclusive if the system does not show even this thread.
    return ownTask() === undefined ? undefined : true;
  }

  /** @param {any} message in the inbox, to which any code of the process can post */
  #receive(message) {
    try {
      const former = this.#threads.get(message.previous);
      if (message.join === true) this.#add(message);
      const record = this.#threads.get(message.thread);
      if (record !== undefined) this.#apply(record, message);
      if (former !== undefined) this.#replace(former);
    } catch (error) {
      debug('a message of a thread cannot be read: %O', error);
    }
  }

  /** @param {any} message */
  #add(message) {
    const { thread: id, threadId, listening } = message;
    // Throws if the message is not that of a thread.
    Atomics.load(listening, 0);
    // This thread's own registries are shown in any case.
    if (threadId === worker.threadId) return;
    const record = new ThreadRecord(this.#nextNumber, message, request =>
      record.channel?.postMessage(request),
    );
    this.#nextNumber++;
    record.channel = listen(channelOf(id), received => this.#applyInOrder(record, [received]));
    this.#threads.set(id, record);
    // Until then, the thread posts to the inbox.
    Atomics.store(record.listening, 0, 1);
    if (this.#isAggregated !== undefined) return;
    this.#isAggregated = !this.#isMember();
    if (this.#isAggregated) void this.#primary()?.supervisor.start();
    else this.#members = new MemberThreads();
  }

  /**
   * @param {ThreadRecord} record
   * @param {any} message
   */
  #apply(record, message) {
    // The record may have been replaced while the inbox was read.
    if (this.#threads.get(record.id) !== record) return;
    const { hooks } = record;
    const { parts, left, ended, started, answer, failed } = message;
    record.add(message);
    if (parts !== undefined) {
      if (this.#isAggregated) this.#send(record, parts);
      this.#members?.share(record, parts);
    }
    hooks.started(started);
    if (left === true) record.hasLeft = true;
    if (answer !== undefined) void this.#onAnswer(record, answer, new Map(failed));
    // The thread does not answer requests any more.
    if (left === true || ended === true) hooks.end();
    // If its end will be seen, it is retired then, because its 'exit' listeners may still count.
    if (ended === true && this.#hasEnded(record) === undefined) this.#end(record);
  }

  /** @param {ThreadRecord} former of a thread that is shown with another record now */
  #replace(former) {
    // Everything that it had sent, because its log may contain ended rows.
    former.received.push(...messagesOf(/** @type {any} */ (former.channel)));
    this.#applyReceived(former);
    this.#end(former, true);
  }

  /**
   * @param {ThreadRecord} record
   * @param {SharedParts} parts for the aggregator
   */
  #send({ number }, parts) {
    this.#primary()?.supervisor.send('share', number, parts);
  }

  /**
   * @param {ThreadRecord} record whose hooks have run
   * @param {string} request its id
   * @param {Map<unknown, unknown>} failed why, by metric
   */
  async #onAnswer(record, request, failed) {
    await this.#members?.read();
    record.hooks.settle(request, failed);
  }

  /**
   * @param {ThreadRecord} record of a thread that has ended
   * @param {boolean} [isReplaced] whether it is shown with another record now
   */
  #end(record, isReplaced = false) {
    if (this.#threads.get(record.id) !== record) return;
    this.#remove(record);
    this.#members?.end(record, isReplaced);
    if (!this.#isAggregated) return;
    this.#ended.set(record.number, record);
    this.#primary()?.supervisor.retire(record.number, { isLastExpected: false, isReplaced });
  }

  /** @param {ThreadRecord} record */
  #remove(record) {
    record.hooks.end();
    this.#threads.delete(record.id);
    Atomics.store(record.listening, 0, 0);
    record.channel?.close();
  }
}

/**
 * @param {import('node:worker_threads').BroadcastChannel} channel
 * @returns {any[]} messages that have not been delivered yet. Read all at once, because the last one of a
 *   thread closes its channel
 */
function messagesOf(channel) {
  const messages = [];
  for (let received; (received = worker.receiveMessageOnPort(/** @type {any} */ (channel))) !== undefined;)
    messages.push(received.message);
  return messages;
}

module.exports = { ThreadHub };
