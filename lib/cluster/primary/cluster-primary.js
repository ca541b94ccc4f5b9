'use strict';

// Runs on the primary's loop. Collects the cluster's metrics: asks the workers, passes their answers to the
// aggregator, and has it write the page. There is one per process; all AggregatorRegistry objects share it,
// its thread and its spool.

const { debuglog, inspect } = require('node:util');
const { aggregators, customAggregators, plainMetric } = require('./json-aggregators');
const { AggregatorSupervisor } = require('./aggregator-supervisor');
const { ScrapeRounds } = require('./scrape-rounds');
const { ScrapeDurations } = require('./scrape-durations');
const { OwnSnapshots, OWN_ID } = require('./own-snapshots');
const { ReasonCounts } = require('./reason-counts');
const { WorkerRequests } = require('./worker-requests');
const { WorkerRoster } = require('./worker-roster');
const { readAnswer, readExitDirectory, readCheckpointInterval, NOT_UNDERSTOOD } = require('./worker-answer');
const { deathOf, isOnline, ownFields, send, userOf } = require('./worker-record');
const { unavailable } = require('../../registry/unavailable');
const { timedSection } = require('../../event-loop/timed-section');
const { warnOnce } = require('../../options/warnings');
const { RESPONSE, READY, WELCOME, LAST, hasType } = require('../wire/messages');
const { isSnapshotNameOf } = require('../wire/file-names');

const debug = debuglog('prom-client-cluster');

// Timeout of a scrape that no caller waits for.
const UNREQUESTED_TIMEOUT_MILLISECONDS = 5000;

// Two when a worker ends, and one with each shutdown().
const MAX_LAST_SNAPSHOTS = 100;

const PLAIN_TEXT = { openMetrics: false, gzip: false, selfMetrics: false };

/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */
/** @typedef {import('./scrape-callers').Bytes} Bytes */
/** @typedef {import('../aggregator/aggregator').Format} Format */
/** @typedef {import('../aggregator/aggregator').RenderResult} RenderResult */

/**
 * The aggregator's options, and those that concern workers only.
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
 * @property {number} silent workers that have not answered in time; scrapes show their last numbers
 * @property {number} failing workers whose last answer was an error
 * @property {number} retiring dead workers that are not part of the retired totals yet
 * @property {number} retired dead workers that are part of the retired totals
 * @property {number} lostThreads aggregator threads that ended or hung, and were replaced
 * @property {'thread' | 'in place' | 'none'} aggregator where metrics are aggregated; none if there is no
 *   worker yet, and while an aggregator is started
 * @property {'' | 'option' | 'missing' | 'start' | 'lost' | 'memory'} aggregatorReason why not in a thread,
 *   see AggregatorSupervisor.place
 * @property {string} directory of the snapshot files; '' if none can be written
 * @property {Record<string, number>} refused answers that could not be used, or came over IPC, by reason
 * @property {{stage: string, metric: string, count: number}[]} failures in workers: `collect` hooks by
 *   metric, writes
 * @property {number} conflicts how often a metric of a worker was left out because a worker with a lower id
 *   has its name with another type
 * @property {number | undefined} oldestCapture when the oldest numbers of the last scrape were captured, in
 *   milliseconds since the epoch
 * @property {number} snapshotBytes size of all workers' last snapshots together
 */

class ClusterPrimary {
  #options;
  #supervisor;
  #roster;
  #requests;
  #rounds;
  #durations = new ScrapeDurations();
  /** @type {OwnSnapshots | undefined} with `includePrimary` */
  #own = undefined;
  /** @type {(() => Iterable<any>) | undefined} own registries without it, until they have been logged */
  #leftOut = undefined;
  /** @type {RenderResult['state'] | undefined} as of the last render */
  #storeState = undefined;
  /** Whether the last page had numbers of all workers that have ever answered. */
  #isComplete = true;
  /** Answers that were refused here. */
  #refused = new ReasonCounts();
  /** @type {[string, number][]} */
  #refusedByAggregator = [];
  /** Snapshots that came over IPC, by the reason why there was no file. */
  #overIpc = new ReasonCounts();

  /**
   * @param {import('node:cluster').Cluster} cluster
   * @param {PrimaryOptions} options
   * @param {() => Iterable<any>} registries the primary's own, for `includePrimary`
   */
  constructor(cluster, options, registries) {
    this.#options = options;
    if (options.includePrimary)
      this.#own = new OwnSnapshots(registries, snapshot => this.#onOwnSnapshot(snapshot));
    else this.#leftOut = registries;
    this.#supervisor = new AggregatorSupervisor(options, {
      // Running workers learn where their last snapshot goes, or that there is no directory any more.
      onDirectory: () => this.#welcomeAll(),
      onLost: () => this.#onAggregatorLost(),
      onReplaced: () => this.#welcomeAll(),
    });
    this.#rounds = new ScrapeRounds({
      ready: () => this.#ready(),
      generation: () => this.#supervisor.generation,
      connected: () => this.#connected(),
      ask: (workerIds, timeout) => this.#ask(workerIds, timeout),
      giveUp: (workerIds, waited) => this.#giveUp(workerIds, waited),
      render: (formats, final, startedAt) => this.#render(formats, final, startedAt),
      reuse: memory => this.#supervisor.reuse(memory),
      isComplete: () => this.#isComplete,
      failure: () => this.#failure(),
    });
    this.#rounds.onCollected = seconds => this.#durations.collected(seconds);
    this.#requests = new WorkerRequests(workerId => this.#rounds.settle(workerId, false));
    this.#roster = new WorkerRoster(cluster, {
      // A process without workers never starts an aggregator.
      onAdded: () => void this.#supervisor.start(),
      onOnline: record => this.#supervisor.isDirectoryKnown && this.#welcome(record),
      onMessage: (record, message) => this.#onMessage(record, message),
      onGone: workerId => this.#rounds.settle(workerId, false),
      onRetired: record => this.#supervisor.retire(record.worker.id, deathOf(record)),
    });
    this.#roster.open();
  }

  /**
   * The cluster's metrics as text.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing workers are used
   * @returns {Promise<Bytes | undefined>} undefined if there are no workers and never were
   * @throws {Error} if no worker answered in time and there are no earlier numbers
   */
  collect(format, timeout) {
    return this.#rounds.collect(format, timeout);
  }

  /** Whether there is nothing to aggregate, and never was: this process is in no cluster so far. */
  get isAlone() {
    this.#roster.addUnannounced();
    return this.#own === undefined && this.#supervisor.starting === undefined;
  }

  /**
   * Waits until all scrapes under way are answered, and all dead workers are part of the retired totals.
   *
   * @returns {Promise<void>}
   */
  async drained() {
    await this.#rounds.drained();
    await this.#supervisor.allRetired();
  }

  /**
   * Drops totals of dead workers.
   *
   * @param {import('../aggregator/aggregator').RemoveRequest} request
   * @returns {Promise<number>} how many label sets there were
   */
  async removeRetired(request) {
    const { starting } = this.#supervisor;
    // Without an aggregator there were no workers.
    if (starting === undefined) return 0;
    await starting;
    return this.#supervisor.running.removeRetired(request);
  }

  /** Stops the thread, removes the spool, and stops following the cluster. A scrape under way is rejected. */
  async close() {
    this.#roster.close();
    for (const record of this.#roster.all) this.#removeExitDirectory(record);
    this.#rounds.close();
    await this.#supervisor.close();
  }

  /** @param {WorkerRecord} record */
  #removeExitDirectory(record) {
    const { own } = deathOf(record);
    if (own === undefined) return;
    const { removeExitDirectory } = require('../spool/exit-directory');
    removeExitDirectory(own);
  }

  /** @returns {ClusterState} */
  state() {
    const records = this.#roster.all;
    const refused = new Map([...this.#refusedByAggregator, ...this.#refused.entries]);
    if (this.#overIpc.total > 0) refused.set('over-ipc', this.#overIpc.total);
    return {
      workers: records.length,
      silent: records.filter(({ timedOut }) => timedOut).length,
      failing: records.filter(({ error }) => error !== undefined).length,
      retiring: this.#supervisor.retiring,
      retired: this.#supervisor.retired,
      lostThreads: this.#supervisor.lostThreads,
      ...this.#supervisor.place,
      directory: this.#supervisor.directory,
      refused: Object.fromEntries(refused),
      failures: this.#storeState?.failures ?? [],
      conflicts: this.#storeState?.conflicts ?? 0,
      oldestCapture: this.#storeState?.oldestCapture,
      snapshotBytes: this.#storeState?.snapshotBytes ?? 0,
    };
  }

  /**
   * @returns {Promise<unknown> | undefined} undefined if there is nothing to aggregate: no workers, no own
   *   registries
   */
  #ready() {
    this.#roster.addUnannounced();
    this.#logLeftOut();
    return this.#own === undefined ? this.#supervisor.starting : this.#supervisor.start();
  }

  /** One line for those who miss the primary's own metrics. */
  #logLeftOut() {
    if (this.#leftOut === undefined || !debug.enabled) return;
    const names = [...this.#leftOut()].flatMap(registry => registry.getMetricsAsArray().map(nameOf));
    this.#leftOut = undefined;
    if (names.length === 0) return;
    debug('metrics of the primary are left out, because includePrimary is not set: %s', names.join(', '));
  }

  /** A new aggregator has no numbers of living workers: they are asked for full snapshots. */
  #onAggregatorLost() {
    for (const record of this.#roster.all) record.position = undefined;
    if (this.#own !== undefined) this.#own.position = undefined;
    // At once and not with the next scrape, because the numbers of a worker that dies until then would be
    // lost.
    if (!this.#rounds.isCollecting)
      this.collect(PLAIN_TEXT, UNREQUESTED_TIMEOUT_MILLISECONDS).catch(() => {});
  }

  #welcomeAll() {
    for (const record of this.#roster.all) if (isOnline(record.worker)) this.#welcome(record);
  }

  /** @param {WorkerRecord} record */
  #welcome(record) {
    const { worker, exitName } = record;
    send(worker, { type: WELCOME, exitName, ...this.#requestFields(), ...ownFields(record) });
  }

  /** @returns {import('./worker-requests').RequestFields} */
  #requestFields() {
    return {
      directory: this.#supervisor.directory,
      checkpointInterval: this.#options.checkpointInterval,
    };
  }

  /**
   * Whatever a worker sends, nothing may escape to the application's 'message' event.
   *
   * @param {WorkerRecord} record
   * @param {any} message
   */
  #onMessage(record, message) {
    try {
      if (!hasType(message)) return;
      if (message.type === READY) this.#onReady(record, message);
      if (message.type === LAST) this.#onLastSnapshot(record, message);
      if (message.type === RESPONSE) timedSection('primary:answer', () => this.#onResponse(record, message));
    } catch (error) {
      debug('a message of worker %d failed: %s', record.worker.id, error);
    }
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message
   */
  #onReady(record, message) {
    record.hasReplied = true;
    this.#noteCheckpointInterval(record, readCheckpointInterval(message));
    const exitDirectory = readExitDirectory(message);
    if (exitDirectory === undefined) return;
    this.#removeExitDirectory(record);
    record.exitDirectory = exitDirectory;
    record.uid = userOf(record.worker);
  }

  /**
   * Only the first interval of a worker counts, so that each costs one message at most.
   *
   * @param {WorkerRecord} record
   * @param {number | undefined} interval
   */
  #noteCheckpointInterval(record, interval) {
    if (interval === undefined || record.checkpointInterval !== undefined) return;
    record.checkpointInterval = interval;
    // Not with the next request, because nobody may ever scrape.
    if (this.#supervisor.directory !== '') this.#welcome(record);
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message
   */
  #onResponse(record, message) {
    const workerId = record.worker.id;
    const { requestId } = message;
    if (!this.#requests.settle(record, requestId)) {
      // The response belongs to somebody else's request, but a snapshot that came too late is removed.
      if (isSnapshotNameOf(message.file, workerId, requestId)) this.#supervisor.discard(message.file);
      return;
    }
    this.#accept(record, message, requestId);
    if (record.error === undefined) record.answeredAt = performance.now();
    this.#rounds.settle(workerId, record.error === undefined);
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message
   */
  #onLastSnapshot(record, message) {
    // A bound, because nobody has asked for it.
    if (++record.lastSnapshots > MAX_LAST_SNAPSHOTS) this.#refused.add(NOT_UNDERSTOOD.refused);
    else this.#accept(record, message, 0);
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message
   * @param {number} requestId that it answers
   */
  #accept(record, message, requestId) {
    const { answer, overIpc, refused, error } = readAnswer(message, record.worker.id, requestId);
    if (overIpc !== undefined) this.#overIpc.add(overIpc);
    record.sendsSnapshots ||= answer !== undefined && answer.metrics === undefined;
    if (answer !== undefined) this.#passOn(record, answer);
    else this.#refuse(record, refused, error);
  }

  /**
   * @param {WorkerRecord} record
   * @param {import('../aggregator/aggregator').Answer} answer
   */
  #passOn(record, answer) {
    try {
      this.#supervisor.answer(answer);
      record.error = undefined;
    } catch (error) {
      // JSON that is nested too deeply cannot be sent to a thread.
      debug('an answer of worker %d cannot be passed on: %s', record.worker.id, error);
      this.#refuse(record, NOT_UNDERSTOOD.refused, NOT_UNDERSTOOD.error);
    }
  }

  /**
   * @param {WorkerRecord} record
   * @param {string | undefined} reason
   * @param {string | undefined} error
   */
  #refuse(record, reason, error) {
    record.error = error;
    debug('worker %d failed: %s', record.worker.id, error);
    if (reason !== undefined) this.#refused.add(reason);
  }

  /** @param {Buffer | undefined} snapshot */
  #onOwnSnapshot(snapshot) {
    if (snapshot === undefined) this.#refused.add('primary');
    else this.#supervisor.answer({ workerId: OWN_ID, bytes: snapshot });
    this.#rounds.settle(OWN_ID, snapshot !== undefined);
  }

  /** @returns {number[]} ids of those that can be asked now */
  #connected() {
    const workerIds = this.#roster.reachable().map(({ worker }) => worker.id);
    return this.#own === undefined ? workerIds : [OWN_ID, ...workerIds];
  }

  /**
   * @param {number[]} workerIds
   * @param {number} timeout milliseconds
   * @returns {Map<number, number>} by worker, the milliseconds to wait for it; 0 for not at all
   */
  #ask(workerIds, timeout) {
    const fields = this.#requestFields();
    return new Map(workerIds.map(workerId => [workerId, this.#askOne(workerId, timeout, fields)]));
  }

  /**
   * @param {number} workerId
   * @param {number} timeout milliseconds
   * @param {import('./worker-requests').RequestFields} fields
   * @returns {number} milliseconds to wait for it
   */
  #askOne(workerId, timeout, fields) {
    if (workerId === OWN_ID) return this.#own?.ask(timeout) ?? 0;
    const record = this.#roster.get(workerId);
    return record === undefined ? 0 : this.#requests.ask(record, timeout, fields);
  }

  /**
   * @param {Iterable<number>} workerIds of those that have not answered in time
   * @param {number} waited milliseconds
   */
  #giveUp(workerIds, waited) {
    for (const workerId of workerIds) {
      if (workerId === OWN_ID) this.#own?.timeOut(waited);
      else this.#requests.timeOut(this.#roster.get(workerId), waited);
    }
  }

  /** @returns {Error | undefined} why there are no numbers although there are workers */
  #failure() {
    const records = this.#roster.all;
    if (records.length === 0) return undefined;
    const error = records.find(record => record.error !== undefined)?.error;
    const reason =
      error === undefined
        ? 'No worker has answered in time. Do the workers load prom-client-cluster?'
        : 'No worker has sent its metrics: answers were errors.';
    return unavailable(error ?? 'Operation timed out.', reason);
  }

  /**
   * @param {Format[]} formats
   * @param {boolean} final whether to go on although the answer of a worker could not be used
   * @param {number} startedAt when the workers were asked, by performance.now()
   * @returns {Promise<RenderResult>}
   */
  async #render(formats, final, startedAt) {
    const facts = formats.some(({ selfMetrics }) => selfMetrics) ? await this.#facts(startedAt) : undefined;
    const aggregator = this.#supervisor.running;
    const custom = customAggregators();
    // Before the render: a worker that answers meanwhile cannot be on this page.
    const answered = this.#roster.all.filter(({ answeredAt }) => answeredAt !== -Infinity);
    const result = await aggregator.render({ formats, custom, final, facts });
    this.#noteResult(result, answered);
    if (result.bodies !== undefined) this.#supervisor.noteWritten();
    if (result.custom === undefined) return result;
    // Functions of the application cannot be sent to the thread.
    const aggregated = result.custom.map(({ aggregator: name, metrics }) =>
      plainMetric(aggregators[name](metrics)),
    );
    const finished = await aggregator.finish({ formats, aggregated, facts }, result);
    this.#supervisor.noteWritten();
    return finished;
  }

  /**
   * @param {RenderResult} result
   * @param {WorkerRecord[]} answered workers that had answered before
   */
  #noteResult({ refused, state, seconds, known, unreadable }, answered) {
    this.#refusedByAggregator = refused;
    this.#storeState = state;
    warnOfUnknownAggregator(state.failures);
    this.#durations.merged(seconds);
    for (const workerId of unreadable) this.#requests.useIpc(this.#roster.get(workerId));
    const positions = new Map(known);
    const own = this.#own;
    if (own !== undefined && positions.has(OWN_ID)) own.position = positions.get(OWN_ID);
    for (const record of this.#roster.all)
      if (positions.has(record.worker.id)) record.position = positions.get(record.worker.id);
    this.#isComplete = answered.every(
      ({ worker }) => positions.has(worker.id) || this.#roster.get(worker.id) === undefined,
    );
  }

  /**
   * @param {number} startedAt when the workers were asked, by performance.now()
   * @returns {Promise<import('../aggregator/self-metrics').PrimaryFacts>} what only the primary knows about
   *   scrapes
   */
  async #facts(startedAt) {
    const records = this.#roster.all;
    const silent = records.filter(({ timedOut }) => timedOut).length;
    const fresh = records.filter(({ timedOut, answeredAt }) => !timedOut && answeredAt >= startedAt);
    return {
      workers: {
        fresh: fresh.map(({ worker }) => worker.id),
        stale: records.length - fresh.length - silent,
        silent,
        retired: this.#supervisor.retired + this.#supervisor.retiring,
      },
      refused: this.#refused.entries,
      overIpc: this.#overIpc.entries,
      lostThreads: this.#supervisor.lostThreads,
      inPlaceReason: this.#supervisor.place.aggregatorReason,
      durations: await this.#durations.toJSON(),
    };
  }
}

/** @param {{name: string}} metric */
function nameOf({ name }) {
  return name;
}

/**
 * Reports the first metric that is left out because of its aggregator: nobody would look for it.
 *
 * @param {{stage: string, metric: string}[]} failures
 */
function warnOfUnknownAggregator(failures) {
  const failure = failures.find(({ stage }) => stage === 'aggregator');
  if (failure === undefined) return;
  const name = inspect(failure.metric);
  warnOnce(
    'aggregator',
    `The metric ${name} is missing in the cluster's metrics: \`aggregators\` of the primary has no function of its aggregator's name, or that returns no metric`,
  );
}

module.exports = { ClusterPrimary };
