'use strict';

// Runs on the primary's loop. Collects the cluster's metrics: asks the workers, passes their answers to the
// aggregator, and has it write the page. There is one per process: all AggregatorRegistry objects share it,
// with its thread and its spool.

const { inspect } = require('node:util');
const { aggregators, customAggregators, plainMetric } = require('./json-aggregators');
const { AggregatorSupervisor } = require('./aggregator-supervisor');
const { ScrapeRounds } = require('./scrape-rounds');
const { scrapeDurations } = require('./scrape-durations');
const { WorkerRoster } = require('./worker-roster');
const { WorkerMessages } = require('./worker-messages');
const { PageRequests } = require('./page-requests');
const { primaryFacts } = require('./cluster-state');
const { WorkerRecord, deathOf, isOnline } = require('./worker-record');
const { unavailable, timedOut } = require('../../registry/unavailable');
const { debug, isDebugging } = require('../../options/debug-log');
const { warnOnce } = require('../../options/warnings');

/** @typedef {import('../wire/scrape-callers').Bytes} Bytes */
/** @typedef {import('../../aggregator/aggregator').Format} Format */
/** @typedef {import('../../aggregator/aggregator').RenderResult} RenderResult */

/**
 * The aggregator's options, and those that concern workers only.
 *
 * @typedef {import('./aggregator-backend').BackendOptions & {
 *   includePrimary?: boolean,
 *   checkpointInterval?: number,
 * }} PrimaryOptions
 */

/**
 * The threads of this process. They have ids like workers, and are on the page of a primary even without
 * workers.
 *
 * @typedef {object} ProcessThreads
 * @property {() => void} share sends everything they have to a new aggregator
 * @property {() => number[]} shown ids of those that are on the page
 * @property {() => void} receiveAll reads what they have sent, and notices those that have ended
 * @property {(ids: number[]) => void} retired their counts are now part of the totals
 */

class ClusterPrimary {
  /** Keeps the aggregator running: what concerns neither workers nor pages is sent to it directly. */
  supervisor;
  #roster;
  #messages;
  /** @type {ScrapeRounds} */
  #rounds;
  #durations = scrapeDurations();
  /** @type {WorkerRecord | undefined} with `includePrimary` */
  #own = undefined;
  #threads;
  /** @type {(() => Iterable<any>) | undefined} own registries without that option, until logged */
  #leftOut = undefined;

  /**
   * @param {import('node:cluster').Cluster} cluster
   * @param {PrimaryOptions} options
   * @param {() => Iterable<any>} registries the primary's own, for `includePrimary`
   * @param {ProcessThreads} [threads]
   */
  constructor(cluster, options, registries, threads) {
    this.#threads = threads;
    if (options.includePrimary) {
      const { OwnWorker } = require('./own-worker');
      const worker = new OwnWorker(registries, message => this.#messages.receive(own, message));
      const own = (this.#own = new WorkerRecord(/** @type {any} */ (worker)));
    } else this.#leftOut = registries;
    this.supervisor = new AggregatorSupervisor(options, {
      // Tells running workers where to write their last columns, or that there is no directory any more.
      onDirectory: () => this.#welcomeAll(),
      onStarted: () => this.#onAggregatorStarted(),
      onRetired: ids => threads?.retired(ids),
    });
    this.#rounds = new ScrapeRounds({
      ready: () => this.#ready(),
      losses: () => this.supervisor.lostThreads,
      connected: () => this.#connected(),
      ask: (record, timeout) => this.#messages.ask(record, timeout),
      giveUp: (records, waited) => this.#giveUp(records, waited),
      render: (formats, final, startedAt) => this.#render(formats, final, startedAt),
      discard: file => this.supervisor.send('discard', file),
      failure: () => this.#failure(),
    });
    this.#messages = new WorkerMessages({
      supervisor: this.supervisor,
      pageRequests: new PageRequests(this.#rounds, this.supervisor),
      checkpointInterval: options.checkpointInterval,
      onAnswered: (...answered) => this.#rounds.settle(...answered),
    });
    this.#roster = new WorkerRoster(cluster, {
      // A process without workers never starts an aggregator.
      onAdded: () => void this.supervisor.start(),
      onOnline: record => {
        this.#messages.welcome(record);
        // A request or its answer may be lost with an earlier link.
        record.outstanding = 0;
        this.#rounds.settle(record, false, -Infinity);
      },
      onMessage: (record, message) => this.#messages.receive(record, message),
      onGone: record => this.#rounds.settle(record, false),
      onRetired: record => this.supervisor.retire(record.worker.id, deathOf(record)),
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
    return /** @type {Promise<Bytes | undefined>} */ (this.#rounds.collect(format, timeout));
  }

  /**
   * Builds a push of remote write in the aggregator.
   *
   * @param {import('../../aggregator/push-sessions').PushRequest} push
   * @param {string} format name of the format that determines the names of samples
   * @param {number} timeout as that of collect()
   * @returns {Promise<import('../wire/scrape-callers').BuiltPush | undefined>} undefined if there is nothing
   *   to push
   * @throws {Error} as collect()
   */
  buildPush(push, format, timeout) {
    const page = { format, gzip: false, selfMetrics: true, push };
    return /** @type {Promise<any>} */ (this.#rounds.collect(page, timeout));
  }

  /** Whether there is nothing to aggregate and never was: this process has had no worker so far. */
  get isAlone() {
    this.#roster.addUnannounced();
    return this.#own === undefined && this.supervisor.starting === undefined;
  }

  /**
   * Waits until all scrapes under way are answered, and all dead workers are part of the retired totals.
   *
   * @returns {Promise<void>}
   */
  async drained() {
    await this.#rounds.drained();
    await this.supervisor.allRetired();
  }

  /**
   * Drops totals of dead workers.
   *
   * @param {import('../../aggregator/aggregator').RemoveRequest} request
   * @returns {Promise<number>} how many label sets there were
   */
  async removeRetired(request) {
    const { starting } = this.supervisor;
    // If no aggregator was ever started, there were no workers.
    if (starting === undefined) return 0;
    await starting;
    return this.supervisor.request('removeRetired', request);
  }

  /** Stops the thread, removes the spool, and stops following the cluster. A scrape under way is rejected. */
  async close() {
    this.#roster.close();
    for (const record of this.#roster.all) {
      if (isOnline(record.worker)) this.#messages.dismiss(record);
    }
    this.#rounds.close(this.#threads === undefined ? 'AggregatorRegistry' : 'WorkerRegistry');
    await this.supervisor.close();
  }

  /** @returns {import('./cluster-state').ClusterState} */
  state() {
    return { ...this.supervisor.place, directory: this.supervisor.directory };
  }

  /** @returns {import('./cluster-state').Sources} */
  get sources() {
    const threads = this.#threads?.shown() ?? [];
    return { records: this.#roster.all, supervisor: this.supervisor, messages: this.#messages, threads };
  }

  /**
   * @returns {Promise<unknown> | undefined} undefined if there is nothing to aggregate: no workers, no own
   *   registries
   */
  #ready() {
    this.#roster.addUnannounced();
    this.#logLeftOut();
    return this.#own === undefined ? this.supervisor.starting : this.supervisor.start();
  }

  /** Logs one line, for readers who miss the primary's own metrics. */
  #logLeftOut() {
    if (this.#leftOut === undefined || !isDebugging()) return;
    const names = [...this.#leftOut()].flatMap(registry =>
      registry.getMetricsAsArray().map((/** @type {{name: string}} */ { name }) => name),
    );
    this.#leftOut = undefined;
    if (names.length === 0) return;
    debug('metrics of the primary are left out, because includePrimary is not set: %s', names.join(', '));
  }

  /** A new aggregator has nothing of living workers and threads: it needs their sources from the start. */
  #onAggregatorStarted() {
    for (const record of this.#followed) record.position = undefined;
    this.#threads?.share();
  }

  #welcomeAll() {
    for (const record of this.#roster.all) if (isOnline(record.worker)) this.#messages.welcome(record);
  }

  /** @returns {WorkerRecord[]} those that can be asked now */
  #connected() {
    this.#threads?.receiveAll();
    return [this.#own ?? [], this.#roster.reachable()].flat();
  }

  /**
   * @param {Iterable<WorkerRecord>} records of those that have not answered in time
   * @param {number} waited milliseconds
   */
  #giveUp(records, waited) {
    this.#durations.collect.observe(waited / 1000);
    for (const record of records) this.#messages.timeOut(record);
  }

  /** @returns {Error | undefined} why there are no numbers although there are workers */
  #failure() {
    const records = this.#roster.all;
    if (records.length === 0) {
      return this.#own && timedOut('The metrics of this process were not ready in time.');
    }
    const error = records.find(record => record.error !== undefined)?.error;
    return error === undefined
      ? timedOut('No worker has answered in time. Do the workers load prom-client-cluster?')
      : unavailable(error, 'No worker has sent its metrics: all answers were errors.');
  }

  /**
   * @param {Format[]} formats
   * @param {boolean} final whether to write the page even if the answer of a worker could not be used
   * @param {number} startedAt when the workers were asked, by performance.now()
   * @returns {Promise<import('./scrape-rounds').Rendered>}
   */
  async #render(formats, final, startedAt) {
    const facts = formats.some(({ selfMetrics }) => selfMetrics)
      ? await primaryFacts(this.sources, this.#durations, startedAt)
      : undefined;
    const aggregator = this.supervisor.running;
    const custom = customAggregators();
    const shown = this.#followed.filter(({ isShown }) => isShown).map(({ worker }) => worker.id);
    const rendered = await aggregator.request('render', { formats, custom, final, facts, shown });
    /** @type {import('./scrape-rounds').Rendered} */
    const result = { ...rendered, isIncomplete: this.#noteResult(rendered) };
    if (result.custom === undefined) return result;
    // Functions of the application cannot be sent to the thread.
    const aggregated = result.custom.map(({ aggregator: name, metrics }) =>
      plainMetric(aggregators[name](metrics)),
    );
    return { ...result, ...(await aggregator.request('finish', { formats, aggregated, facts })) };
  }

  /** All processes that answer to this one, and itself. */
  get #followed() {
    return [...this.#roster.all, this.#own ?? []].flat();
  }

  /**
   * @param {RenderResult} result
   * @returns {boolean} whether the page lacks numbers of a worker that an earlier one had
   */
  #noteResult({ state, seconds, positions: entries, ended, failures: failed }) {
    warnOfUnknownAggregator(state.failures);
    this.#durations.merge.observe(seconds);
    const failures = new Map(failed);
    const positions = new Map(entries);
    const batches = new Map(ended);
    let isIncomplete = false;
    for (const record of this.#followed) {
      const { id } = record.worker;
      record.badLog = failures.get(id)?.badLog;
      record.overIpc = failures.get(id)?.isUnreadable === true;
      record.ended = batches.get(id);
      if (positions.has(id)) {
        record.position = positions.get(id);
        record.isShown = true;
      } else if (record.isShown) isIncomplete = true;
    }
    return isIncomplete;
  }
}

/**
 * Reports the first metric that is left out because its aggregator is unknown: nobody would notice otherwise.
 *
 * @param {{stage: string, metric: string}[]} failures
 */
function warnOfUnknownAggregator(failures) {
  const failure = failures.find(({ stage }) => stage === 'aggregator');
  if (failure === undefined) return;
  const name = inspect(failure.metric);
  warnOnce(
    'aggregator',
    `The metric ${name} is missing in the cluster's metrics: the primary's \`aggregators\` lack its aggregator, or that returns no metric`,
  );
}

module.exports = { ClusterPrimary };
