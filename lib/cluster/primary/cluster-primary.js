'use strict';

// The primary's side of a cluster: follows its workers' lives, asks them, and routes their answers to the aggregator. One
// a process; all AggregatorRegistry objects share it, its thread and its spool.

const { debuglog } = require('node:util');
const { aggregators, customAggregators } = require('./json-aggregators');
const { AggregatorSupervisor } = require('./aggregator-supervisor');
const { ScrapeRounds } = require('./scrape-rounds');
const { ScrapeDurations } = require('./scrape-durations');
const { OwnSnapshots, OWN_ID } = require('./own-snapshots');
const { hookTime } = require('../capture/collect-hooks');
const { timedSection } = require('../../event-loop/timed-section');
const { REQUEST, RESPONSE, READY, WELCOME, hasType } = require('../wire/messages');
const { isSnapshotNameOf } = require('../wire/file-names');
const { newMember, isOnline, send } = require('./worker-record');

const debug = debuglog('prom-client-cluster');

// For the scrape that nobody waits for.
const UNASKED_TIMEOUT_MILLISECONDS = 5000;

// How long a silent worker is left alone before it is asked the same again: one that has never spoken, and one that
// has. The latter longer each time: what is sent to a stopped process piles up.
const ASK_AGAIN_MILLISECONDS = 1000;
const ASK_SPOKEN_AGAIN_MILLISECONDS = 5000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

const MAX_REASONS = 32;

const PLAIN_TEXT = { openMetrics: false, gzip: false, selfMetrics: false };

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {import('./worker-record').Member} Member */
/** @typedef {import('./scrape-callers').Bytes} Bytes */
/** @typedef {import('../aggregator/aggregator').Format} Format */
/** @typedef {import('../aggregator/aggregator').RenderResult} RenderResult */

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
  #supervisor;
  #nextRequest = 1;
  #rounds;
  #durations = new ScrapeDurations();
  /** @type {OwnSnapshots | undefined} where the primary's own registries take part */
  #own = undefined;
  /** @type {RenderResult['state'] | undefined} as of the last render */
  #storeState = undefined;
  /** Whether the last page had numbers of all workers that have ever told any. */
  #isComplete = true;
  #listeners;

  /** @type {Map<string, number>} answers that were refused here, by reason */
  #refused = new Map();
  /** @type {[string, number][]} */
  #refusedByAggregator = [];
  /** @type {Map<string, number>} snapshots that came over IPC, by the reason why there was no file */
  #overIpc = new Map();

  /**
   * @param {import('node:cluster').Cluster} cluster
   * @param {PrimaryOptions} options
   * @param {() => Iterable<any>} registries the primary's own, for `includePrimary`
   */
  constructor(cluster, options, registries) {
    this.#cluster = cluster;
    this.#options = options;
    if (options.includePrimary) this.#own = new OwnSnapshots(registries);
    this.#supervisor = new AggregatorSupervisor(options, {
      // Workers that run already learn where their last snapshot goes, or that there is no place for it any more.
      onDirectory: () => this.#welcomeAll(),
      onLost: () => this.#onAggregatorLost(),
      onReplaced: () => this.#supervisor.directory !== '' && this.#welcomeAll(),
    });
    this.#rounds = new ScrapeRounds({
      // Without workers there is nothing to start for, unless the primary has numbers of its own.
      ready: () => {
        this.#adoptStrangers();
        return this.#own === undefined ? this.#supervisor.starting : this.#supervisor.start();
      },
      generation: () => this.#supervisor.lostThreads,
      connected: () => this.#connected(),
      ask: (workerIds, timeout) => this.#ask(workerIds, timeout),
      giveUp: workerIds => this.#giveUp(workerIds),
      render: (formats, final, startedAt) => this.#render(formats, final, startedAt),
      reuse: memory => this.#supervisor.reuse(memory),
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
    await this.#supervisor.allRetired();
  }

  /** Ends thread and spool, and leaves the cluster's events alone. A scrape that is under way is rejected. */
  async close() {
    for (const [event, listener] of this.#listeners)
      this.#cluster.removeListener(event, /** @type {any} */ (listener));
    this.#rounds.close();
    await this.#supervisor.close();
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
      retiring: this.#supervisor.retiring,
      retired: this.#supervisor.retired,
      lostThreads: this.#supervisor.lostThreads,
      directory: this.#supervisor.directory,
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
    // A process without workers never gets here.
    this.#supervisor.start();
  }

  /** Some workers come without an event: a test's, or those of a wrapped cluster module. */
  #adoptStrangers() {
    for (const worker of this.#workers()) if (isOnline(worker)) this.#adopt(worker);
  }

  /** A new aggregator knows nothing of living workers: they are asked for everything. */
  #onAggregatorLost() {
    for (const member of this.#members.values()) member.known = undefined;
    if (this.#own !== undefined) this.#own.known = undefined;
    // Not at the next scrape only: what a worker has told the lost thread would be lost with the worker until then.
    if (!this.#rounds.isCollecting) this.collect(PLAIN_TEXT, UNASKED_TIMEOUT_MILLISECONDS).catch(() => {});
  }

  #welcomeAll() {
    for (const { worker } of this.#members.values()) if (isOnline(worker)) this.#sendWelcome(worker);
  }

  /** @param {Worker} worker */
  #welcome(worker) {
    if (this.#supervisor.directory !== '') this.#sendWelcome(worker);
  }

  /** @param {Worker} worker */
  #sendWelcome(worker) {
    const member = this.#members.get(worker.id);
    if (member === undefined) return;
    const { exitName } = member;
    const { directory } = this.#supervisor;
    const { checkpointInterval } = this.#options;
    send(worker, { type: WELCOME, directory, exitName, checkpointInterval });
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
      if (isSnapshotNameOf(message.file, worker.id, message.requestId))
        this.#supervisor.discard(message.file);
      return;
    }
    member.outstanding = 0;
    member.spoken = true;
    member.silent = false;
    member.error = undefined;
    if (Array.isArray(message.metrics)) {
      this.#supervisor.answer({ workerId: worker.id, metrics: message.metrics });
    } else if (typeof message.snapshot === 'string') {
      debug('worker %d answered over IPC: %s', worker.id, message.reason);
      addOne(this.#overIpc, String(message.reason));
      this.#supervisor.answer({ workerId: worker.id, snapshot: message.snapshot });
    } else if (isSnapshotNameOf(message.file, worker.id, requestId)) {
      this.#supervisor.answer({ workerId: worker.id, file: message.file });
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
    this.#supervisor.retire(worker.id);
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
    const { directory } = this.#supervisor;
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
      else this.#supervisor.answer({ workerId: OWN_ID, bytes: snapshot });
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
    const aggregator = this.#supervisor.running;
    const custom = customAggregators();
    const result = await aggregator.render({ formats, custom, final, facts });
    this.#refusedByAggregator = result.refused;
    this.#storeState = result.state;
    this.#durations.merged(result.seconds);
    for (const [workerId, known] of result.known) this.#setKnown(workerId, known);
    const shown = new Set(result.known.map(([workerId]) => workerId));
    this.#isComplete = [...this.#members.values()].every(
      ({ worker, answeredAt }) => answeredAt === -Infinity || shown.has(worker.id),
    );
    if (result.bodies !== undefined) this.#supervisor.noteWritten();
    if (result.custom === undefined) return result;
    // A program's own functions cannot leave this thread.
    const aggregated = result.custom.map(({ aggregator: name, metrics }) => aggregators[name](metrics));
    const finished = await aggregator.finish({ formats, aggregated, facts }, result);
    this.#supervisor.noteWritten();
    return finished;
  }

  /**
   * @param {number} workerId
   * @param {import('../wire/messages').JournalPosition | undefined} known
   */
  #setKnown(workerId, known) {
    if (workerId === OWN_ID && this.#own !== undefined) this.#own.known = known;
    const member = this.#members.get(workerId);
    if (member !== undefined) member.known = known;
  }

  /**
   * @param {number} startedAt when the workers were asked, by performance.now()
   * @returns {Promise<import('../aggregator/self-metrics').PrimaryFacts>} what only the primary knows of how scrapes go
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
        retired: this.#supervisor.retired + this.#supervisor.retiring,
      },
      refused: [...this.#refused],
      overIpc: [...this.#overIpc],
      lostThreads: this.#supervisor.lostThreads,
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
