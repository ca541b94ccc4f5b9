'use strict';

// Runs in the aggregator thread, or in slices on the primary's event loop if no thread can be started. Reads
// what workers have written, applies it to the cluster store, and writes the page.

const { ClusterStore } = require('../store/cluster-store');
const { sampleFamily } = require('../exposition/sample-family');
const { isNative } = require('../exposition/page-format');
const { selfMetrics } = require('./self-metrics');
const { CurrentSpool } = require('./current-spool');
const { PageWriter } = require('./page-writer');
const { PushSessions } = require('./push-sessions');
const { WorkerAnswers } = require('./worker-answers');
const { Retirement } = require('./retirement');
const { isTransient } = require('../spool/safe-files');
const { debug } = require('../options/debug-log');

/** @typedef {import('../cluster/wire/scrape-callers').Format} Format */
/** @typedef {import('../cluster/wire/scrape-callers').PageFile} PageFile */
/** @typedef {import('../cluster/wire/scrape-callers').BuiltPush} BuiltPush */

/** @typedef {import('./self-metrics').PrimaryFacts} PrimaryFacts */
/** @typedef {import('./worker-answers').Answer} Answer */

/** @typedef {import('./gzip').Body} Body */

/** @typedef {{labels: import('../store/cluster-family').Label[], name?: string}} RemoveRequest */

/**
 * @typedef {object} RenderResult
 * @property {[number, import('../source/source-log').LogPosition | undefined][]} positions what the
 *   aggregator has of each worker's log
 * @property {[number, number][]} ended by worker: the last batch of its ended rows, if the saved totals have
 *   all that were taken over. The worker need not offer this batch and earlier ones any more
 * @property {[number, import('./worker-answers').Failure][]} failures of last answers, by worker
 * @property {number[]} again workers to ask again, because their last answer could not be used
 * @property {{aggregator: string, name: string, metrics: any[]}[]} [custom] families that only the primary
 *   can aggregate
 * @property {(Body | PageFile | BuiltPush)[]} [bodies] by format
 * @property {[string, number][]} refused answers that were refused so far, by reason
 * @property {ReturnType<ClusterStore['state']>} state
 * @property {number} seconds duration of merging and writing, as far as it went
 * @property {boolean} isEmpty whether there are no numbers of any worker
 * @property {boolean} [hasNative] whether the page has native histograms
 */

/**
 * Options that the primary sends to a thread.
 *
 * @typedef {object} SentOptions
 * @property {string} [directory] where to try first to create the spool
 * @property {string[]} [fallbacks] see Spool.open
 * @property {string} [adopt] directory of an earlier thread, or of an earlier leader of the group, whose
 *   totals are continued
 * @property {Uint8Array} [totals] of dead workers, which an earlier thread could not write
 * @property {number} [retiredMaxAge] milliseconds
 * @property {boolean} [activeSeries] whether self-metrics include the number of series of each metric
 * @property {boolean} [inMemory] whether there is no spool, because no other process writes into it
 */

/**
 * @typedef {object} HostOptions
 * @property {boolean} lock see Spool.open
 * @property {(directory: string) => void} onDirectory called when the spool's directory changes; '' if no
 *   directory can be written
 * @property {import('./retirement').OnSaved} onRetired called when the totals of dead workers have been saved
 */

/** @typedef {SentOptions & HostOptions} AggregatorOptions */

class Aggregator {
  #options;
  #store;
  #current;
  #answers;
  #retirement;
  /**
   * @type {import('../store/cluster-store').MergedFamily[]} of a render that waits for the primary's own
   *   aggregators
   */
  #merged = [];
  #pushSessions = new PushSessions();
  #pages = new PageWriter(this.#pushSessions, ({ name }, error) =>
    this.#store.countFailure('merge', name, error),
  );

  /**
   * @param {AggregatorOptions} options
   */
  constructor(options) {
    this.#options = options;
    this.#store = new ClusterStore({ retiredMaxAge: options.retiredMaxAge });
    this.#current = new CurrentSpool(options, () => this.#onReopened());
    const onRefused = (/** @type {string} */ reason, /** @type {unknown} */ error) =>
      this.#refuse(reason, error);
    this.#answers = new WorkerAnswers(this.#store, this.#current, onRefused);
    this.#retirement = new Retirement({
      store: this.#store,
      spool: () => this.#current.spool,
      readLog: (...range) => this.#answers.readLog(...range),
      onRefused,
      onSaved: options.onRetired,
    });
    /** @type {Map<string, number>} refused snapshots by reason */
    this.refused = new Map();
  }

  /**
   * Creates the spool, or continues that of an earlier thread.
   *
   * @returns {Promise<void>}
   * @throws {NodeJS.ErrnoException} if that of an earlier thread can be continued later: nothing is lost
   */
  async open() {
    const { adopt, totals } = this.#options;
    await this.#current.open(adopt);
    try {
      this.#retirement.restore(totals);
      if (adopt !== undefined) this.#restoreWorkers();
    } catch (error) {
      this.#retirement.close();
      await this.#current.close(false);
      throw error;
    }
  }

  #restoreWorkers() {
    try {
      for (const workerId of this.#current.spool?.workers() ?? []) this.#restoreWorker(workerId);
    } catch (error) {
      if (isTransient(error)) throw error;
      this.#refuse('restore-worker', error);
    }
  }

  /**
   * Restores a living worker from the files that it has written.
   *
   * @param {number} workerId
   * @throws {unknown} if one of them cannot be read at the moment
   */
  #restoreWorker(workerId) {
    if (this.#store.isClosed(workerId)) {
      this.#current.spool?.unlinkAllOf(workerId);
      return;
    }
    const { files, later } = this.#retirement.readFilesOf(workerId);
    if (later !== undefined) throw later;
    this.#answers.keep(workerId, files);
  }

  /** Writes the totals to a new directory, so that they do not depend on this process's memory. */
  #onReopened() {
    if (this.#current.spool !== undefined)
      for (const { id } of this.#store.workers()) this.#answers.again.add(id);
    this.#retirement.save();
  }

  /** @param {Answer} answer of a worker, or of the primary itself */
  answer(answer) {
    this.#answers.apply(answer);
  }

  /** @param {string} file bare name of columns that are to be removed without reading it */
  discard(file) {
    this.#current.spool?.discard(file);
  }

  /**
   * Adds a dead worker's numbers to the retired totals.
   *
   * @param {number} workerId
   * @param {import('./retirement').Death} [death] absent in a further attempt
   */
  retire(workerId, death) {
    if (!this.#retirement.retire(workerId, death)) return;
    this.#answers.forget(workerId);
  }

  /**
   * Adds what a thread of this process has shared.
   *
   * @param {number} id
   * @param {import('../source/thread-mirror').SharedParts} parts
   */
  share(id, parts) {
    this.#store.share(id, parts);
  }

  /**
   * Drops totals of dead workers, also for the next thread.
   *
   * @param {RemoveRequest} request
   * @returns {number} how many label sets there were
   */
  removeRetired({ labels, name }) {
    const count = this.#store.removeRetired(labels, name);
    if (count > 0) this.#retirement.save();
    return count;
  }

  /**
   * Merges the numbers of all workers and writes them.
   *
   * @param {object} request
   * @param {Format[]} request.formats
   * @param {string[]} request.custom names of aggregators that only the primary can run
   * @param {boolean} request.final whether to write a page although an answer could not be used
   * @param {PrimaryFacts} [request.facts] if a format includes self-metrics
   * @param {number[]} [request.shown] ids of all workers that a page has shown
   * @returns {Generator<void, RenderResult>}
   */
  *render({ formats, custom, final, facts, shown }) {
    const start = performance.now();
    const again = [...this.#answers.again];
    // Read before the merge: it drops series that are too old, and this page still shows them.
    const { isEmpty } = this.#store;
    if (again.length > 0 && !final) return { ...this.#outcome(again, start), isEmpty };
    this.#answers.again.clear();
    for (const workerId of [...this.#retirement.unread]) this.retire(workerId);
    yield* this.#store.readThreads();
    // The label sets of a dead worker with an unreadable file are not known, either.
    const known = this.#retirement.unread.size === 0 ? shown : [...(shown ?? []), ...this.#retirement.unread];
    this.#merged = yield* this.#store.merge(new Set(custom), known);
    // The next thread must not bring back what this page no longer shows.
    if (this.#store.isUnsaved) this.#retirement.save();
    const waiting = this.#merged.flatMap(family => ('metrics' in family ? [family] : []));
    if (waiting.length > 0) return { ...this.#outcome(again, start), isEmpty, custom: waiting };
    const pages = yield* this.finish({ formats, aggregated: [], facts });
    return { ...this.#outcome(again, start), isEmpty, ...pages };
  }

  /**
   * @param {number[]} again
   * @param {number} start when the render began, by performance.now()
   * @returns {Omit<RenderResult, 'isEmpty'>}
   */
  #outcome(again, start) {
    return {
      positions: Array.from(this.#store.workers(), ({ id, position }) => [id, position]),
      ended: this.#store.savedBatches,
      failures: [...this.#answers.failures],
      again,
      refused: [...this.refused],
      state: this.#store.state(),
      seconds: (performance.now() - start) / 1000,
    };
  }

  /**
   * Writes the families that render() has merged.
   *
   * @param {object} request
   * @param {Format[]} request.formats
   * @param {any[]} request.aggregated the result for each family of `custom`: a metric as JSON; undefined if
   *   it is left out; null if it is not a metric
   * @param {PrimaryFacts} [request.facts]
   * @returns {Generator<void, Pick<RenderResult, 'bodies' | 'hasNative'>>}
   */
  *finish({ formats, aggregated, facts }) {
    let next = 0;
    const families = this.#merged.flatMap(family => {
      if ('view' in family) return family.view;
      const metric = aggregated[next++];
      if (metric === null) this.#store.countFailure('aggregator', family.name, 'its result is not a metric');
      if (!metric) return [];
      return metric.nativeHistograms ? this.#store.familyOf(metric) : sampleFamily(metric, {});
    });
    this.#merged = [];
    const selfFamilies = facts === undefined ? [] : this.#selfFamilies(facts, families);
    const bodies = yield* this.#pages.write(families, selfFamilies, formats);
    return { bodies: yield* this.writeFiles(bodies, formats), hasNative: families.some(isNative) };
  }

  /**
   * See PageWriter.writeFiles().
   *
   * @param {(Body | BuiltPush)[]} bodies
   * @param {Format[]} formats
   */
  writeFiles(bodies, formats) {
    return this.#pages.writeFiles(bodies, formats, this.#current.spool);
  }

  /**
   * Sends the push that a render has built.
   *
   * @param {import('../push/aggregator-sender').DeliveryRequest} request
   * @returns {Promise<import('../push/aggregator-sender').Outcome>}
   */
  deliverPush(request) {
    return this.#pushSessions.deliver(request);
  }

  /** @param {import('../push/aggregator-sender').SupersedeRequest} request */
  supersedePush(request) {
    this.#pushSessions.supersede(request);
  }

  /**
   * Releases the spool's lock.
   *
   * @param {{remove?: boolean}} [options] whether to remove the directory, default true
   */
  async close({ remove = true } = {}) {
    if (!remove) this.#retirement.save();
    this.#retirement.close();
    await this.#current.close(remove);
  }

  /**
   * @param {PrimaryFacts} facts
   * @param {import('../exposition/text-format').Family[]} families of the page
   */
  #selfFamilies(facts, families) {
    const { failures } = this.#answers;
    const counted = this.#options.activeSeries ? families : undefined;
    const metrics = selfMetrics(facts, this.#store.state(), failures, this.refused, Date.now(), counted);
    return metrics.map(metric => sampleFamily(metric, {}));
  }

  /**
   * @param {string} reason
   * @param {unknown} error
   */
  #refuse(reason, error) {
    debug('refused (%s): %s', reason, error);
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}

module.exports = { Aggregator };
