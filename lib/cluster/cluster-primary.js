'use strict';

// The primary's side of a scrape: asks the workers, waits, routes their answers to the aggregator, hands out the body.
// One a process; all AggregatorRegistry objects share it, its thread and its spool.

const { debuglog } = require('node:util');
const { aggregators, customAggregators } = require('./aggregation-rules');
const { startBackend, ThreadLostError } = require('./aggregator-backend');
const { timedSection } = require('./section');
const { REQUEST, RESPONSE, READY, WELCOME, isSnapshotNameOf, hasType } = require('./protocol');
const { newMember, isOnline, send } = require('./cluster-member');
const { disarm, distinctFormats, keyOf } = require('./scrape-callers');

const debug = debuglog('prom-client-cluster');

// How often a round asks a worker again whose answer could not be used, or renders again when the thread died.
const MAX_TRIES = 3;

// Node's timers go wrong beyond 2^31 ms; nobody waits that long for metrics.
const MAX_TIMEOUT_MILLISECONDS = 600_000;

// How much longer than asked for a caller may wait for its text, once the workers have answered.
const RENDER_GRACE_MILLISECONDS = 2000;

// Starting a thread takes some 50 ms.
const START_MILLISECONDS = 5000;

// How long a silent worker is left alone before it is asked the same again: one that has never spoken, and one that
// has. The latter longer each time: what is sent to a stopped process piles up.
const ASK_AGAIN_MILLISECONDS = 1000;
const ASK_SPOKEN_AGAIN_MILLISECONDS = 5000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

// Threads that die as fast as they are started are not started for ever.
const MAX_LOSSES = 5;
const LOSS_WINDOW_MILLISECONDS = 60_000;

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {import('./cluster-member').Member} Member */
/** @typedef {import('./scrape-callers').Caller} Caller */
/** @typedef {import('./scrape-callers').Bytes} Bytes */
/** @typedef {import('./aggregator-backend').RenderResult} RenderResult */

/**
 * How the cluster's metrics are collected.
 *
 * @typedef {object} ClusterState
 * @property {number} workers that are connected, or were and are not retired yet
 * @property {number} silent workers that have not answered in time and are served from their last numbers
 * @property {number} failing workers whose last answer was an error
 * @property {number} retiring dead workers whose numbers are not among the retired totals yet
 * @property {string} directory of the snapshot files; '' where none can be written
 * @property {Record<string, number>} refused how many answers could not be used, or came over IPC, by reason
 * @property {{stage: string, metric: string, count: number}[]} failures in workers: `collect` hooks by metric, writes
 * @property {number} conflicts how often a worker's metric was left out because others have its name for another type
 * @property {number | undefined} oldestCapture when the oldest numbers of the last scrape were taken, milliseconds since the epoch
 * @property {number} snapshotBytes size of all workers' last snapshots together
 */

/**
 * @typedef {object} Round
 * @property {Set<Caller>} callers
 * @property {Set<number>} waiting ids of the workers that have not answered
 * @property {boolean} answered whether anybody has
 * @property {() => void} onProgress called when a worker has answered or is not waited for any more
 */

class ClusterPrimary {
  #cluster;
  #options;
  /** @type {Map<number, Member>} */
  #members = new Map();
  /** @type {Promise<any> | undefined} */
  #starting = undefined;
  /** @type {Awaited<ReturnType<typeof startBackend>> | undefined} */
  #backend = undefined;
  #directory = '';
  /** @type {Set<number>} dead workers that the aggregator has not yet confirmed to be among the retired */
  #retiring = new Set();
  #nextRequest = 1;
  /** @type {Round | undefined} */
  #round = undefined;
  /** @type {Set<Caller>} who came while a round was collecting */
  #next = new Set();
  /** @type {RenderResult['state'] | undefined} as of the last render */
  #storeState = undefined;
  /** @type {Promise<unknown>} */
  #rendering = Promise.resolve();
  /** @type {number[]} when threads were lost, by performance.now() */
  #losses = [];
  /** Which backend it is: what one was told, the next does not know. */
  #generation = 0;
  /** Whether the backend has heard from all workers that can be heard since it started. */
  #isComplete = true;
  /** @type {string[]} files that were announced while there was no backend */
  #orphans = [];
  #closed = false;
  #listeners;
  #onExit = () => this.#removeDirectory();

  /** @type {Map<string, number>} answers that were refused here, by reason */
  #refused = new Map();
  /** @type {[string, number][]} */
  #refusedByAggregator = [];

  /**
   * @param {import('node:cluster').Cluster} cluster
   * @param {import('./aggregator-backend').BackendOptions} options
   */
  constructor(cluster, options) {
    this.#cluster = cluster;
    this.#options = options;
    this.#listeners = /** @type {const} */ ([
      ['fork', (/** @type {Worker} */ worker) => this.#adopt(worker)],
      ['online', (/** @type {Worker} */ worker) => this.#welcome(worker)],
      [
        'message',
        (/** @type {Worker} */ worker, /** @type {unknown} */ message) => this.#onMessage(worker, message),
      ],
      ['disconnect', (/** @type {Worker} */ worker) => this.#onGone(worker, 'disconnected')],
      ['exit', (/** @type {Worker} */ worker) => this.#onGone(worker, 'exited')],
    ]);
    for (const [event, listener] of this.#listeners) cluster.on(event, /** @type {any} */ (listener));
    for (const worker of this.#workers()) {
      this.#adopt(worker);
      this.#welcome(worker);
    }
  }

  /**
   * The cluster's metrics as text.
   *
   * @param {import('./aggregator').Format} format
   * @param {number} timeout milliseconds until the answer is given with what is known
   * @returns {Promise<Bytes | undefined>} undefined where there are no workers and never were
   * @throws {Error} where nobody answered in time and nothing is known
   */
  collect(format, timeout) {
    return new Promise((resolve, reject) => {
      /** @type {Caller} */
      const caller = {
        deadline: performance.now() + Math.min(timeout, MAX_TIMEOUT_MILLISECONDS),
        timer: undefined,
        format,
        resolve: bytes => {
          disarm(caller);
          resolve(bytes);
        },
        reject: error => {
          disarm(caller);
          reject(error);
        },
      };
      this.#next.add(caller);
      // From its own call on, also while it waits for somebody else's round to end.
      this.#arm(caller);
      // Callers of the same turn share a round. One that is collecting already asked before they came.
      if (this.#round === undefined) queueMicrotask(() => this.#startRound());
    });
  }

  /** Ends thread and spool, and leaves the cluster's events alone. A scrape that is under way is rejected. */
  async close() {
    this.#closed = true;
    for (const [event, listener] of this.#listeners)
      this.#cluster.removeListener(event, /** @type {any} */ (listener));
    process.removeListener('exit', this.#onExit);
    for (const caller of [...this.#next, ...(this.#round?.callers ?? [])]) {
      caller.reject(new Error('The AggregatorRegistry was closed.'));
    }
    this.#next.clear();
    this.#round?.callers.clear();
    this.#round?.onProgress();
    // A backend that does not come up is not waited for longer than this: its thread keeps nothing alive.
    await Promise.race([
      this.#starting,
      new Promise(resolve => setTimeout(resolve, START_MILLISECONDS).unref()),
    ]);
    await this.#backend?.close();
    this.#removeDirectory();
  }

  /** @returns {ClusterState} */
  state() {
    const members = [...this.#members.values()];
    const refused = [...this.#refusedByAggregator, ...this.#refused];
    return {
      workers: members.length,
      silent: members.filter(({ silent }) => silent).length,
      failing: members.filter(({ error }) => error !== undefined).length,
      retiring: this.#retiring.size,
      directory: this.#directory,
      refused: Object.fromEntries(refused),
      failures: this.#storeState?.failures ?? [],
      conflicts: this.#storeState?.conflicts ?? 0,
      oldestCapture: this.#storeState?.oldestCapture,
      snapshotBytes: this.#storeState?.snapshotBytes ?? 0,
    };
  }

  /** @returns {Worker[]} */
  #workers() {
    return /** @type {Worker[]} */ (Object.values(this.#cluster.workers ?? {}));
  }

  /** @param {Worker} worker */
  #adopt(worker) {
    if (this.#members.has(worker.id)) return;
    this.#members.set(worker.id, newMember(worker));
    this.#start();
  }

  /** Starts the aggregator, once. A process without workers never gets here. */
  #start() {
    this.#starting ??= this.#startBackend(undefined);
    return this.#starting;
  }

  /** @param {string | undefined} adopt */
  async #startBackend(adopt) {
    const events = {
      onDirectory: (/** @type {string} */ directory) => this.#onDirectory(directory),
      onRetired: (/** @type {number[]} */ workerIds) => {
        for (const workerId of workerIds) this.#retiring.delete(workerId);
      },
      onRestart: () => this.#restart(),
    };
    if (adopt === undefined) process.on('exit', this.#onExit);
    this.#backend = await startBackend(this.#options, events, adopt);
    for (const workerId of this.#retiring) this.#backend.retire(workerId);
    for (const file of this.#orphans.splice(0)) this.#backend.discard(file);
    if (adopt !== undefined)
      for (const { worker } of this.#members.values()) if (isOnline(worker)) this.#welcome(worker);
  }

  /** The thread died: a new one goes on with the retired totals, and the workers are asked for everything. */
  #restart() {
    if (this.#closed) return;
    for (const member of this.#members.values()) member.known = undefined;
    this.#backend = undefined;
    this.#generation++;
    this.#isComplete = false;
    const now = performance.now();
    this.#losses = [...this.#losses.filter(time => now - time < LOSS_WINDOW_MILLISECONDS), now];
    if (this.#losses.length > MAX_LOSSES) this.#options = { ...this.#options, inPlace: true };
    this.#starting = this.#startBackend(this.#directory || undefined);
  }

  /** @param {string} directory */
  #onDirectory(directory) {
    const before = this.#directory;
    this.#directory = directory;
    // Workers that run already learn where their last snapshot goes.
    if (directory !== before)
      for (const { worker } of this.#members.values()) if (isOnline(worker)) this.#sendWelcome(worker);
  }

  #removeDirectory() {
    if (this.#directory === '') return;
    const { Spool } = require('./spool');
    Spool.removeSync(this.#directory);
  }

  /** @param {Worker} worker */
  #welcome(worker) {
    if (this.#directory !== '') this.#sendWelcome(worker);
  }

  /** @param {Worker} worker */
  #sendWelcome(worker) {
    const member = this.#members.get(worker.id);
    if (member === undefined) return;
    send(worker, { type: WELCOME, directory: this.#directory, exitName: member.exitName });
  }

  /**
   * @param {Worker} worker
   * @param {any} message
   */
  #onMessage(worker, message) {
    if (!hasType(message)) return;
    const member = this.#members.get(worker?.id);
    if (member === undefined) return;
    if (message.type === READY) member.spoken = true;
    if (message.type === RESPONSE) timedSection('primary:answer', () => this.#onAnswer(member, message));
  }

  /**
   * @param {Member} member
   * @param {any} message
   */
  #onAnswer(member, message) {
    const { worker, outstanding: requestId } = member;
    if (requestId === 0 || message.requestId !== requestId) {
      // An answer to an unknown request is not ours, but a snapshot that came too late is.
      if (isSnapshotNameOf(message.file, worker.id, message.requestId)) this.#backend?.discard(message.file);
      return;
    }
    member.outstanding = 0;
    member.spoken = true;
    member.silent = false;
    member.error = undefined;
    if (Array.isArray(message.metrics)) {
      this.#backend?.answer({ workerId: worker.id, metrics: message.metrics });
    } else if (typeof message.snapshot === 'string') {
      debug('worker %d answered over IPC: %s', worker.id, message.reason);
      this.#count('over-ipc');
      this.#backend?.answer({ workerId: worker.id, snapshot: message.snapshot });
    } else if (isSnapshotNameOf(message.file, worker.id, requestId)) {
      if (this.#backend === undefined) this.#orphans.push(message.file);
      else this.#backend.answer({ workerId: worker.id, file: message.file });
    } else {
      member.error = typeof message.error === 'string' ? message.error : 'Its answer is not understood';
      debug('worker %d failed: %s', worker.id, member.error);
      this.#count(typeof message.error === 'string' ? 'worker-error' : 'answer');
    }
    this.#settle(worker.id, member.error === undefined);
  }

  /**
   * @param {number} workerId
   * @param {boolean} answered
   */
  #settle(workerId, answered) {
    const round = this.#round;
    if (round === undefined) return;
    round.answered ||= answered;
    if (round.waiting.delete(workerId)) round.onProgress();
  }

  /**
   * @param {Worker} worker
   * @param {'exited' | 'disconnected'} what
   */
  #onGone(worker, what) {
    const member = this.#members.get(worker.id);
    if (member === undefined) return;
    member[what] = true;
    this.#settle(worker.id, false);
    // Between the two the worker may still work and count: it is served from its last numbers.
    if (!member.exited || !member.disconnected) return;
    this.#members.delete(worker.id);
    this.#retiring.add(worker.id);
    this.#backend?.retire(worker.id);
  }

  async #startRound() {
    if (this.#round !== undefined || this.#next.size === 0) return;
    /** @type {Round} */
    const round = { callers: this.#next, waiting: new Set(), answered: false, onProgress: () => {} };
    this.#next = new Set();
    this.#round = round;
    try {
      await this.#run(round);
    } catch (error) {
      for (const caller of round.callers) caller.reject(/** @type {Error} */ (error));
    } finally {
      this.#round = undefined;
      if (this.#next.size > 0) this.#startRound();
    }
  }

  /** @param {Round} round */
  async #run(round) {
    if (this.#starting === undefined) {
      for (const caller of round.callers) caller.resolve(undefined);
      return;
    }
    let ask = this.#connected();
    for (let tries = 1; ; tries++) {
      await this.#start();
      const generation = this.#generation;
      timedSection('primary:ask', () => this.#ask(round, ask));
      await this.#wait(round);
      if (round.callers.size === 0) return;
      if (generation !== this.#generation && tries < MAX_TRIES) {
        // The backend that some have answered to is gone; another is there already, and knows nothing of them.
        ask = this.#connected();
        continue;
      }
      const result = await this.#render([...round.callers], tries >= MAX_TRIES).catch(error => {
        if (!(error instanceof ThreadLostError) || tries >= MAX_TRIES) throw error;
        return undefined;
      });
      if (result === undefined || generation !== this.#generation) ask = this.#connected();
      else if (result.again.length > 0 && result.bodies === undefined) ask = result.again;
      else {
        // A worker that hung when the backend was lost cannot tell it again: its counts are missing until it can.
        this.#isComplete ||= ![...this.#members.values()].some(({ silent, spoken }) => silent && spoken);
        this.#deliver([...round.callers], result, round.answered);
        return;
      }
      if (tries > MAX_TRIES) throw new Error('Operation timed out.');
    }
  }

  /** @returns {number[]} ids of the workers that can be asked now */
  #connected() {
    return [...this.#members.values()]
      .filter(({ worker, disconnected, exited }) => !disconnected && !exited && isOnline(worker))
      .map(({ worker }) => worker.id);
  }

  /**
   * Asks workers that have no other request to answer.
   *
   * @param {Round} round
   * @param {number[]} workerIds
   */
  #ask(round, workerIds) {
    if (round.callers.size === 0) return;
    const deadline = Math.max(...Array.from(round.callers, caller => caller.deadline));
    const timeout = Math.max(Math.round(deadline - performance.now()), 1);
    for (const workerId of workerIds) {
      const member = this.#members.get(workerId);
      if (member === undefined) continue;
      if (member.outstanding !== 0) {
        // Node drops what is sent to a process that does not listen yet: one that has never spoken may have loaded the
        // library since. One that has may have lost a message. Both are asked the same again; nobody waits for them.
        if (!member.silent || performance.now() - member.askedAt < member.pause) continue;
        const longest = member.spoken ? LONGEST_PAUSE_MILLISECONDS : ASK_AGAIN_MILLISECONDS;
        member.pause = Math.min(member.pause * 2, longest);
      } else {
        member.outstanding = this.#nextRequest++;
        member.pause = member.spoken ? ASK_SPOKEN_AGAIN_MILLISECONDS : ASK_AGAIN_MILLISECONDS;
        round.waiting.add(workerId);
      }
      member.askedAt = performance.now();
      const { outstanding: requestId, exitName, known, worker } = member;
      const directory = this.#directory;
      send(worker, { type: REQUEST, requestId, directory, exitName, known, timeout }, () =>
        this.#settle(workerId, false),
      );
    }
  }

  /**
   * Waits until everybody has answered, or no caller waits any more.
   *
   * @param {Round} round
   * @returns {Promise<void>}
   */
  async #wait(round) {
    for (const caller of round.callers) this.#arm(caller);
    await new Promise(resolve => {
      round.onProgress = () => {
        if (round.waiting.size === 0 || round.callers.size === 0) resolve(undefined);
      };
      round.onProgress();
    });
    round.onProgress = () => {};
    for (const caller of round.callers) this.#boundRendering(caller);
    for (const workerId of round.waiting) {
      const member = this.#members.get(workerId);
      if (member === undefined || member.outstanding === 0) continue;
      member.silent = true;
      debug('worker %d is silent', workerId);
    }
    round.waiting.clear();
  }

  /** @param {Caller} caller */
  #arm(caller) {
    disarm(caller);
    const left = Math.max(Math.ceil(caller.deadline - performance.now()), 1);
    caller.timer = setTimeout(() => this.#expire(caller), left);
  }

  /**
   * What is left to do for a caller takes milliseconds, unless the backend hangs.
   *
   * @param {Caller} caller
   */
  #boundRendering(caller) {
    disarm(caller);
    const left = Math.max(caller.deadline - performance.now(), 0) + RENDER_GRACE_MILLISECONDS;
    caller.timer = setTimeout(() => {
      this.#round?.callers.delete(caller);
      caller.reject(new Error('Operation timed out.'));
    }, left);
  }

  /**
   * Serves a caller whose time is up with what is known.
   *
   * @param {Caller} caller
   */
  async #expire(caller) {
    const round = this.#round;
    this.#next.delete(caller);
    round?.callers.delete(caller);
    this.#boundRendering(caller);
    try {
      // Less than was known before would look like a reset of all counters.
      if (!this.#isComplete) throw new ThreadLostError('workers have to tell the new backend first');
      const result = await this.#render([caller], true);
      this.#deliver([caller], result, round?.answered ?? false);
    } catch (error) {
      const lost = error instanceof ThreadLostError;
      caller.reject(lost ? new Error('Operation timed out.') : /** @type {Error} */ (error));
    }
    // Only now: whoever is served last does not wait for the round to render for nobody.
    round?.onProgress();
  }

  /**
   * @param {Caller[]} callers
   * @param {boolean} final
   * @returns {Promise<RenderResult>}
   */
  #render(callers, final) {
    // One after the other: a family that a program's own function aggregates takes two steps.
    const result = this.#rendering.then(() => this.#renderNow(callers, final));
    this.#rendering = result.catch(() => {});
    return result;
  }

  /**
   * @param {Caller[]} callers
   * @param {boolean} final
   * @returns {Promise<RenderResult>}
   */
  async #renderNow(callers, final) {
    const backend = this.#backend;
    if (backend === undefined || !backend.isRunning)
      throw new ThreadLostError('the aggregator is not running');
    const formats = distinctFormats(callers);
    const custom = customAggregators();
    const result = await backend.render({ formats, custom, final });
    this.#refusedByAggregator = result.refused;
    this.#storeState = result.state;
    for (const [workerId, known] of result.known) {
      const member = this.#members.get(workerId);
      if (member !== undefined) member.known = known;
    }
    if (result.custom === undefined) return result;
    // A program's own functions cannot leave this thread.
    const aggregated = result.custom.map(({ aggregator, metrics }) => aggregators[aggregator](metrics));
    return backend.finish({ formats, aggregated }, result);
  }

  /**
   * @param {Caller[]} callers
   * @param {RenderResult} result
   * @param {boolean} answered
   */
  #deliver(callers, { bodies, isEmpty }, answered) {
    if (isEmpty && !answered && this.#members.size > 0) {
      const failed = [...this.#members.values()].find(({ error }) => error !== undefined);
      throw new Error(failed?.error ?? 'Operation timed out.');
    }
    if (isEmpty && !answered) {
      for (const caller of callers) caller.resolve(undefined);
      return;
    }
    const keys = distinctFormats(callers).map(keyOf);
    const results = (bodies ?? []).map(({ buffer, length, ascii }) => ({
      bytes: Buffer.from(buffer, 0, length),
      ascii,
    }));
    for (const caller of callers) caller.resolve(results[keys.indexOf(keyOf(caller.format))]);
  }

  /** @param {string} reason */
  #count(reason) {
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1);
  }
}

module.exports = { ClusterPrimary };
