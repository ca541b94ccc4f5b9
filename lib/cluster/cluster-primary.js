'use strict';

// The primary's side of a cluster: follows its workers' lives, asks them, routes their answers to the aggregator, and
// starts that again where it is lost. One a process; all AggregatorRegistry objects share it, its thread and its spool.

const { debuglog } = require('node:util');
const { aggregators, customAggregators } = require('./aggregation-rules');
const { startBackend, ThreadLostError } = require('./aggregator-backend');
const { ScrapeRounds } = require('./scrape-rounds');
const { ScrapeDurations } = require('./scrape-durations');
const { OwnSnapshots, OWN_ID } = require('./own-snapshots');
const { hookTime } = require('./collect-hooks');
const { timedSection } = require('./section');
const { REQUEST, RESPONSE, READY, WELCOME, isSnapshotNameOf, hasType } = require('./protocol');
const { newMember, isOnline, send } = require('./cluster-member');

const debug = debuglog('prom-client-cluster');

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

// Where none of them has written a page, a round's last try is not for another one.
const MAX_LOSSES_IN_VAIN = 2;

const MAX_REASONS = 32;

const PLAIN_TEXT = { openMetrics: false, gzip: false, selfMetrics: false };

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {import('./cluster-member').Member} Member */
/** @typedef {import('./scrape-callers').Bytes} Bytes */
/** @typedef {import('./aggregator').Format} Format */
/** @typedef {import('./aggregator').RenderResult} RenderResult */

/**
 * Beside those of the aggregator, what only workers need to know.
 *
 * @typedef {import('./aggregator-backend').BackendOptions & {
 *   includePrimary?: boolean,
 *   checkpointInterval?: number,
 * }} PrimaryOptions
 */

/**
 * How the cluster's metrics are collected.
 *
 * @typedef {object} ClusterState
 * @property {number} workers that are connected, or were and are not retired yet
 * @property {number} silent workers that have not answered in time and are served from their last numbers
 * @property {number} failing workers whose last answer was an error
 * @property {number} retiring dead workers whose numbers are not among the retired totals yet
 * @property {number} retired dead workers whose numbers are
 * @property {number} lostThreads aggregator threads that ended or hung and were replaced
 * @property {string} directory of the snapshot files; '' where none can be written
 * @property {Record<string, number>} refused how many answers could not be used, or came over IPC, by reason
 * @property {{stage: string, metric: string, count: number}[]} failures in workers: `collect` hooks by metric, writes
 * @property {number} conflicts how often a worker's metric was left out because others have its name for another type
 * @property {number | undefined} oldestCapture when the oldest numbers of the last scrape were taken, milliseconds since the epoch
 * @property {number} snapshotBytes size of all workers' last snapshots together
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
  #rounds;
  #durations = new ScrapeDurations();
  /** @type {OwnSnapshots | undefined} where the primary's own registries take part */
  #own = undefined;
  /** @type {RenderResult['state'] | undefined} as of the last render */
  #storeState = undefined;
  /** @type {number[]} when threads were lost, by performance.now() */
  #losses = [];
  /** How many threads were lost since one has written a page. */
  #lossesInVain = 0;
  /** Counts the backends: what one was told, the next does not know. */
  #lostThreads = 0;
  /** How many dead workers' numbers are among the retired totals. */
  #retired = 0;
  /** Whether the last page had numbers of all workers that have ever told any. */
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
  /** @type {Map<string, number>} snapshots that came over IPC, by the reason why there was no file */
  #overIpc = new Map();
  /** @type {(() => void)[]} who waits until a dead worker is among the retired */
  #onRetired = [];

  /**
   * @param {import('node:cluster').Cluster} cluster
   * @param {PrimaryOptions} options
   * @param {() => Iterable<any>} registries the primary's own, for `includePrimary`
   */
  constructor(cluster, options, registries) {
    this.#cluster = cluster;
    this.#options = options;
    if (options.includePrimary) this.#own = new OwnSnapshots(registries);
    this.#rounds = new ScrapeRounds({
      // Without workers there is nothing to start for, unless the primary has numbers of its own.
      ready: () => {
        this.#adoptStrangers();
        return this.#own === undefined ? this.#starting : this.#start();
      },
      generation: () => this.#lostThreads,
      connected: () => this.#connected(),
      ask: (workerIds, timeout) => this.#ask(workerIds, timeout),
      giveUp: workerIds => this.#giveUp(workerIds),
      render: (formats, final, startedAt) => this.#render(formats, final, startedAt),
      reuse: memory => this.#backend?.reuse(memory),
      isComplete: () => this.#isComplete,
      failure: () => this.#failure(),
    });
    this.#rounds.onCollected = seconds => this.#durations.collected(seconds);
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
   * @param {Format} format
   * @param {number} timeout milliseconds until the answer is given with what is known
   * @returns {Promise<Bytes | undefined>} undefined where there are no workers and never were
   * @throws {Error} where nobody answered in time and nothing is known
   */
  collect(format, timeout) {
    return this.#rounds.collect(format, timeout);
  }

  /**
   * Waits until scrapes that are under way have been answered, and what dead workers left is among the totals.
   *
   * @returns {Promise<void>}
   */
  async drained() {
    await this.#rounds.drained();
    while (this.#retiring.size > 0 && !this.#closed)
      await new Promise(resolve => this.#onRetired.push(() => resolve(undefined)));
  }

  /** Ends thread and spool, and leaves the cluster's events alone. A scrape that is under way is rejected. */
  async close() {
    this.#closed = true;
    for (const [event, listener] of this.#listeners)
      this.#cluster.removeListener(event, /** @type {any} */ (listener));
    process.removeListener('exit', this.#onExit);
    this.#rounds.close();
    for (const resolve of this.#onRetired.splice(0)) resolve();
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
    const refused = new Map([...this.#refusedByAggregator, ...this.#refused]);
    const overIpc = [...this.#overIpc.values()].reduce((sum, count) => sum + count, 0);
    if (overIpc > 0) refused.set('over-ipc', overIpc);
    return {
      workers: members.length,
      silent: members.filter(({ silent }) => silent).length,
      failing: members.filter(({ error }) => error !== undefined).length,
      retiring: this.#retiring.size,
      retired: this.#retired,
      lostThreads: this.#lostThreads,
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

  /** Some workers come without an event: a test's, or those of a wrapped cluster module. */
  #adoptStrangers() {
    for (const worker of this.#workers()) if (isOnline(worker)) this.#adopt(worker);
  }

  /** Starts the aggregator, once. A process without workers never gets here. */
  #start() {
    this.#starting ??= this.#handled(this.#startBackend(undefined));
    return this.#starting;
  }

  /**
   * Nobody may be waiting for it at the moment.
   *
   * @template T
   * @param {Promise<T>} starting
   */
  #handled(starting) {
    starting.catch(error => debug('the aggregator does not start: %s', error));
    return starting;
  }

  /** @param {string | undefined} adopt */
  async #startBackend(adopt) {
    const events = {
      onDirectory: (/** @type {string} */ directory) => this.#onDirectory(directory),
      onRetired: (/** @type {number[]} */ workerIds) => {
        for (const workerId of workerIds) if (this.#retiring.delete(workerId)) this.#retired++;
        for (const resolve of this.#onRetired.splice(0)) resolve();
      },
      onRestart: () => this.#restart(),
    };
    if (!process.listeners('exit').includes(this.#onExit)) process.on('exit', this.#onExit);
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
    if (this.#own !== undefined) this.#own.known = undefined;
    this.#lostThreads++;
    this.#backend = undefined;
    const now = performance.now();
    this.#losses = [...this.#losses.filter(time => now - time < LOSS_WINDOW_MILLISECONDS), now];
    this.#lossesInVain++;
    const isHopeless = this.#losses.length > MAX_LOSSES || this.#lossesInVain >= MAX_LOSSES_IN_VAIN;
    if (isHopeless) this.#options = { ...this.#options, inPlace: true };
    this.#starting = this.#handled(this.#startBackend(this.#directory || undefined));
    // Not at the next scrape only: what a worker has told the lost thread would be lost with the worker until then.
    if (!this.#rounds.isCollecting) this.collect(PLAIN_TEXT, START_MILLISECONDS).catch(() => {});
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
    const { checkpointInterval } = this.#options;
    send(worker, {
      type: WELCOME,
      directory: this.#directory,
      exitName: member.exitName,
      checkpointInterval,
    });
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
      addOne(this.#overIpc, String(message.reason));
      this.#backend?.answer({ workerId: worker.id, snapshot: message.snapshot });
    } else if (isSnapshotNameOf(message.file, worker.id, requestId)) {
      if (this.#backend === undefined) this.#orphans.push(message.file);
      else this.#backend.answer({ workerId: worker.id, file: message.file });
    } else {
      member.error = typeof message.error === 'string' ? message.error : 'Its answer is not understood';
      debug('worker %d failed: %s', worker.id, member.error);
      this.#count(typeof message.error === 'string' ? 'worker-error' : 'answer');
    }
    if (member.error === undefined) member.answeredAt = performance.now();
    this.#rounds.settle(worker.id, member.error === undefined);
  }

  /**
   * @param {Worker} worker
   * @param {'exited' | 'disconnected'} what
   */
  #onGone(worker, what) {
    const member = this.#members.get(worker.id);
    if (member === undefined) return;
    member[what] = true;
    this.#rounds.settle(worker.id, false);
    this.#retireIfGone(member);
  }

  /**
   * Between 'disconnect' and 'exit' the worker may still work and count: it is served from its last numbers.
   *
   * @param {Member} member
   */
  #retireIfGone({ worker, exited, disconnected }) {
    // A worker that could not be started is dead without 'exit'. And Node puts 'disconnect' off while a connection is being
    // handed over, for ever if the worker dies over that.
    if (!(exited || worker.isDead?.()) || (!disconnected && worker.isConnected())) return;
    this.#members.delete(worker.id);
    this.#retiring.add(worker.id);
    this.#backend?.retire(worker.id);
  }

  /** @returns {number[]} ids of those who can be asked now */
  #connected() {
    for (const member of [...this.#members.values()]) this.#retireIfGone(member);
    const workers = [...this.#members.values()]
      .filter(({ worker, disconnected, exited }) => !disconnected && !exited && isOnline(worker))
      .map(({ worker }) => worker.id);
    return this.#own === undefined ? workers : [OWN_ID, ...workers];
  }

  /**
   * Asks those that have no other request to answer.
   *
   * @param {number[]} workerIds
   * @param {number} timeout milliseconds
   * @returns {number[]} who is to be waited for
   */
  #ask(workerIds, timeout) {
    return workerIds.filter(workerId => {
      if (workerId === OWN_ID) return this.#askOwn(timeout);
      const member = this.#members.get(workerId);
      return member !== undefined && this.#askMember(member, timeout);
    });
  }

  /**
   * @param {Member} member
   * @param {number} timeout milliseconds
   * @returns {boolean} whether to wait for it
   */
  #askMember(member, timeout) {
    // Another round has asked it: one answer serves both.
    if (member.outstanding !== 0 && !member.silent) return true;
    const isWaitedFor = member.outstanding === 0;
    if (isWaitedFor) {
      member.outstanding = this.#nextRequest++;
      member.pause = member.spoken ? ASK_SPOKEN_AGAIN_MILLISECONDS : ASK_AGAIN_MILLISECONDS;
    } else {
      // Node drops what is sent to a process that does not listen yet: one that has never spoken may have loaded the
      // library since. One that has may have lost a message. Both are asked the same again; nobody waits for them.
      if (performance.now() - member.askedAt < member.pause) return false;
      const longest = member.spoken ? LONGEST_PAUSE_MILLISECONDS : ASK_AGAIN_MILLISECONDS;
      member.pause = Math.min(member.pause * 2, longest);
    }
    member.askedAt = performance.now();
    const { outstanding: requestId, exitName, known, worker } = member;
    const directory = this.#directory;
    const { checkpointInterval } = this.#options;
    const request = { type: REQUEST, requestId, directory, exitName, known, timeout, checkpointInterval };
    send(worker, request, () => {
      // Asked again after its pause.
      member.silent = true;
      this.#rounds.settle(worker.id, false);
    });
    return isWaitedFor;
  }

  /**
   * Captures the primary's own numbers.
   *
   * @param {number} timeout milliseconds
   * @returns {boolean} whether to wait for them: not where a hook is still busy for an earlier scrape
   */
  #askOwn(timeout) {
    const own = /** @type {OwnSnapshots} */ (this.#own);
    if (own.isBusy) return false;
    own.capture(hookTime(timeout)).then(snapshot => {
      if (snapshot === undefined) this.#count('primary');
      else this.#backend?.answer({ workerId: OWN_ID, bytes: snapshot });
      this.#rounds.settle(OWN_ID, snapshot !== undefined);
    });
    return true;
  }

  /** @param {Iterable<number>} workerIds of those who have not answered in time */
  #giveUp(workerIds) {
    for (const workerId of workerIds) {
      const member = this.#members.get(workerId);
      if (member === undefined || member.outstanding === 0) continue;
      member.silent = true;
      debug('worker %d is silent', workerId);
    }
  }

  /** @returns {Error | undefined} why a cluster of which nothing is known is not just empty */
  #failure() {
    const members = [...this.#members.values()];
    if (members.length === 0) return undefined;
    const failed = members.find(({ error }) => error !== undefined);
    return new Error(failed?.error ?? 'Operation timed out.');
  }

  /**
   * @param {Format[]} formats
   * @param {boolean} final
   * @param {number} startedAt when the workers were asked for it, by performance.now()
   * @returns {Promise<RenderResult>}
   */
  async #render(formats, final, startedAt) {
    const facts = formats.some(({ selfMetrics }) => selfMetrics) ? await this.#facts(startedAt) : undefined;
    const backend = this.#backend;
    if (backend === undefined || !backend.isRunning)
      throw new ThreadLostError('the aggregator is not running');
    const custom = customAggregators();
    const result = await backend.render({ formats, custom, final, facts });
    this.#refusedByAggregator = result.refused;
    this.#storeState = result.state;
    this.#durations.merged(result.seconds);
    for (const [workerId, known] of result.known) this.#setKnown(workerId, known);
    const shown = new Set(result.known.map(([workerId]) => workerId));
    this.#isComplete = [...this.#members.values()].every(
      ({ worker, answeredAt }) => answeredAt === -Infinity || shown.has(worker.id),
    );
    if (result.bodies !== undefined) this.#lossesInVain = 0;
    if (result.custom === undefined) return result;
    // A program's own functions cannot leave this thread.
    const aggregated = result.custom.map(({ aggregator, metrics }) => aggregators[aggregator](metrics));
    const finished = await backend.finish({ formats, aggregated, facts }, result);
    this.#lossesInVain = 0;
    return finished;
  }

  /**
   * @param {number} workerId
   * @param {import('./protocol').Known | undefined} known
   */
  #setKnown(workerId, known) {
    if (workerId === OWN_ID && this.#own !== undefined) this.#own.known = known;
    const member = this.#members.get(workerId);
    if (member !== undefined) member.known = known;
  }

  /**
   * @param {number} startedAt when the workers were asked, by performance.now()
   * @returns {Promise<import('./self-metrics').PrimaryFacts>} what only the primary knows of how scrapes go
   */
  async #facts(startedAt) {
    const members = [...this.#members.values()];
    const silent = members.filter(member => member.silent).length;
    const fresh = members
      .filter(member => !member.silent && member.answeredAt >= startedAt)
      .map(({ worker }) => worker.id);
    return {
      workers: {
        fresh,
        stale: members.length - fresh.length - silent,
        silent,
        retired: this.#retired + this.#retiring.size,
      },
      refused: [...this.#refused],
      overIpc: [...this.#overIpc],
      lostThreads: this.#lostThreads,
      durations: await this.#durations.toJSON(),
    };
  }

  /** @param {string} reason */
  #count(reason) {
    addOne(this.#refused, reason);
  }
}

/**
 * @param {Map<string, number>} counts
 * @param {string} reason may come from a worker, which must not make the map grow without end
 */
function addOne(counts, reason) {
  const key = counts.has(reason) || counts.size < MAX_REASONS ? reason : 'other';
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

module.exports = { ClusterPrimary };
