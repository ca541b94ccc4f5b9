'use strict';

// Runs in the aggregator thread, or in slices on the primary's event loop if no thread can be started. Reads
// snapshots, applies them to the cluster store, and writes the page.

const { debuglog } = require('node:util');
const { ClusterStore } = require('../store/cluster-store');
const { renderBytes } = require('../../exposition/text-bytes');
const { PagePool } = require('./page-pool');
const { sampleFamily } = require('../../exposition/sample-family');
const { compressBody } = require('./gzip');
const { selectFamilies, textKeyOf } = require('../../exposition/page-format');
const { selfMetrics } = require('./self-metrics');
const { LastSnapshots } = require('./last-snapshots');
const { Retirement, filesOf, TRANSIENT_CODES } = require('./retirement');
const { isExitFile } = require('../wire/file-names');
const { Spool } = require('../spool/spool');

const debug = debuglog('prom-client-cluster');

// Errors that a second request in the same round may repair: the worker sends its dictionary from the start,
// or a new file.
const ASK_AGAIN_CODES = new Set(['dictionary-start', 'dictionary', 'numbers', 'ENOENT']);

// Pauses before a directory is created again after no place was writable. They double, up to the longest.
const FIRST_PAUSE_MILLISECONDS = 5000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

// Of a file that belongs to another user, or in a directory that does: one of the processes has changed its
// user.
const NOT_ALLOWED_CODES = new Set(['EACCES', 'EPERM']);

/** @typedef {import('../../exposition/page-format').PageFormat & {selfMetrics: boolean}} Format */

/** @typedef {import('./self-metrics').PrimaryFacts} PrimaryFacts */

/**
 * @typedef {object} Answer
 * @property {number} workerId
 * @property {string} [file] bare name in the spool
 * @property {number} [maxBytes] how long the file is according to the worker; a longer one is refused
 * @property {string} [snapshot] base64
 * @property {Uint8Array} [bytes] the snapshot itself, in an ArrayBuffer that nothing else uses
 * @property {unknown[]} [metrics] of a worker that runs prom-client, as JSON
 */

/** @typedef {import('./gzip').Body} Body */

/** @typedef {{labels: import('../store/cluster-family').Label[], name?: string}} RemoveRequest */

/**
 * @typedef {object} RenderResult
 * @property {[number, import('../wire/messages').JournalPosition | undefined][]} known what the primary has
 *   of each worker's journal
 * @property {number[]} again workers to ask again, because their last answer could not be used
 * @property {number[]} unreadable workers whose file could not be read because it belongs to another user
 * @property {{aggregator: string, name: string, metrics: any[]}[]} [custom] families that only the primary
 *   can aggregate
 * @property {Body[]} [bodies] by format
 * @property {[string, number][]} refused answers that were refused so far, by reason
 * @property {ReturnType<ClusterStore['state']>} state
 * @property {number} seconds duration of merging and writing, as far as it went
 * @property {boolean} isEmpty whether there are no numbers of any worker
 */

class Aggregator {
  #store;
  /** @type {Spool | undefined} undefined if no directory can be written */
  #spool = undefined;
  #options;
  #retirement;
  /** @type {Set<number>} workers to ask again */
  #again = new Set();
  /** @type {Set<number>} workers whose last answer could not be used: the page shows their earlier numbers */
  #unusable = new Set();
  /**
   * @type {Map<number, string>} by worker: the file of its last answer, if it cannot be read at the moment
   */
  #unread = new Map();
  /**
   * @type {import('../store/cluster-store').MergedFamily[]} of a render that waits for the primary's own
   *   aggregators
   */
  #merged = [];
  #pagePool = new PagePool();
  /** @type {Set<number>} workers whose last file belongs to another user */
  #unreadable = new Set();
  #reopenPause = FIRST_PAUSE_MILLISECONDS;
  /** @type {NodeJS.Timeout | undefined} */
  #reopenTimer = undefined;
  /** @type {LastSnapshots | undefined} for the next thread; undefined if there will be none */
  #lastSnapshots = undefined;
  #closed = false;

  /**
   * @param {object} options
   * @param {string} [options.directory] where to try first to create the spool
   * @param {number} [options.retiredMaxAge] milliseconds
   * @param {string} [options.name] of the directory, if a new one is created
   * @param {string} [options.adopt] directory of an earlier thread, whose totals are continued
   * @param {Uint8Array} [options.totals] of dead workers, which an earlier thread could not write
   * @param {boolean} options.lock see Spool.open
   * @param {boolean} [options.retain] whether to retain the workers' last snapshots for a thread that is
   *   started later
   * @param {(directory: string) => void} options.onDirectory called when the spool's directory changes
   * @param {import('./retirement').OnSaved} options.onRetired called when the totals of dead workers have been
   *   saved
   */
  constructor(options) {
    this.#options = options;
    this.#store = new ClusterStore({ retiredMaxAge: options.retiredMaxAge });
    this.#retirement = new Retirement({
      store: this.#store,
      spool: () => this.#spool,
      onRefused: (reason, error) => this.#refuse(reason, error),
      onSaved: options.onRetired,
    });
    /** @type {Map<string, number>} refused snapshots by reason */
    this.refused = new Map();
  }

  /** Creates the spool, or continues that of an earlier thread. Never rejects. */
  async open() {
    const { adopt, name, totals } = this.#options;
    await this.#openSpool(adopt, name);
    this.#retirement.restore(totals);
    if (adopt === undefined) return;
    try {
      for (const workerId of this.#spool?.workers() ?? []) this.#restoreWorker(workerId);
    } catch (error) {
      this.#refuse('restore-worker', error);
    }
  }

  get #directory() {
    return this.#spool?.directory;
  }

  /**
   * @param {string} [adopt]
   * @param {string} [name]
   */
  async #openSpool(adopt, name) {
    const { directory, lock, retain, onDirectory } = this.#options;
    try {
      this.#spool = await Spool.open({
        directory,
        name,
        adopt,
        lock,
        onLost: reason => this.#onLost(reason),
      });
      if (retain) this.#lastSnapshots = new LastSnapshots(this.#spool);
      onDirectory(this.#spool.directory);
      this.#reopenPause = FIRST_PAUSE_MILLISECONDS;
    } catch (error) {
      debug(
        'no directory can be written, snapshots come over IPC: %o',
        /** @type {any} */ (error).failures ?? error,
      );
      this.#spool = this.#lastSnapshots = undefined;
      onDirectory('');
      if (this.#closed) return;
      this.#reopenTimer = setTimeout(() => this.#reopen(), this.#reopenPause);
      this.#reopenTimer.unref();
      this.#reopenPause = Math.min(this.#reopenPause * 2, LONGEST_PAUSE_MILLISECONDS);
    }
  }

  /**
   * Creates a directory in place of one that was lost, or that could not be created.
   *
   * @param {string} [lost] is continued if it is still there
   */
  async #reopen(lost) {
    if (this.#closed) return;
    await this.#openSpool(lost);
    // There are no retained dictionaries in a new one.
    for (const { id } of this.#store.workers()) this.#store.requestFullDictionary(id);
    this.#retirement.save();
  }

  /**
   * Restores a living worker from its last snapshot, and reads the files that the earlier thread had not read
   * yet.
   *
   * @param {number} workerId
   */
  #restoreWorker(workerId) {
    if (this.#store.isClosed(workerId)) {
      this.#spool?.unlinkAllOf(workerId);
      return;
    }
    try {
      for (const snapshot of this.#lastSnapshots?.read(workerId) ?? []) this.#store.apply(workerId, snapshot);
    } catch (error) {
      this.#refuse('restore-worker', error);
    }
    for (const file of filesOf(this.#spool, workerId)) {
      if (!isExitFile(file)) this.answer({ workerId, file });
    }
    this.#again.delete(workerId);
  }

  /**
   * Replaces a lost directory, unless only its lock is lost. Workers can write again whatever was in it.
   *
   * @param {unknown} reason
   */
  async #onLost(reason) {
    debug('the snapshot directory is lost: %o', reason);
    if (this.#closed) return;
    const lost = this.#spool;
    this.#spool = undefined;
    await lost?.close({ remove: false });
    await this.#reopen(lost?.directory);
    if (lost !== undefined && lost.directory !== this.#directory) await lost.close({ remove: true });
  }

  /**
   * Applies a worker's answer. An answer that cannot be used is counted, and the worker's earlier numbers
   * stay.
   *
   * @param {Answer} answer
   */
  answer({ workerId, file, maxBytes, snapshot, metrics, bytes }) {
    try {
      if (this.#store.isClosed(workerId)) {
        if (file !== undefined) this.#spool?.unlink(file);
      } else if (metrics !== undefined) {
        this.#store.applyJson(workerId, metrics);
      } else {
        const buffer = this.#snapshotOf({ file, maxBytes, snapshot, bytes });
        this.#store.apply(workerId, buffer);
        if (file !== undefined) this.#retain(workerId, file, buffer);
        // The worker did not find the directory. If it has been removed, exit files and the other workers
        // need a new one.
        if (snapshot !== undefined && this.#spool?.isPresent() === false)
          this.#onLost('a worker found it gone');
      }
      this.#again.delete(workerId);
      this.#unusable.delete(workerId);
      this.#unreadable.delete(workerId);
      this.#forgetUnread(workerId, file);
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (file !== undefined) this.#keepOrDiscard(workerId, file, code);
      this.#unusable.add(workerId);
      this.#refuse(typeof code === 'string' ? code : 'unknown', error);
      if (code === 'dictionary' || code === 'numbers') this.#store.invalidateDictionary(workerId);
      // A worker answers one request at a time, so its answers come in order: the next scrape takes the
      // answer.
      if (code === 'incarnation' || code === 'sequence') this.#store.forgetIdentity(workerId);
      if (ASK_AGAIN_CODES.has(code)) this.#again.add(workerId);
      if (NOT_ALLOWED_CODES.has(code)) this.#noteUnreadable(workerId);
      else if (code === 'ENOENT' && this.#spool?.isPresent() === false) this.#onLost(code);
    }
  }

  /**
   * The worker is asked again in this scrape, to write into a directory of the primary's user, or to answer
   * over IPC.
   *
   * @param {number} workerId
   */
  #noteUnreadable(workerId) {
    this.#again.add(workerId);
    if (this.#spool?.isPresent() === false) this.#onLost('it belongs to another user');
    else this.#unreadable.add(workerId);
  }

  /**
   * A file that cannot be read at the moment is read at the next page, or when the worker is retired.
   *
   * @param {number} workerId
   * @param {string} file
   * @param {string} code of the error
   */
  #keepOrDiscard(workerId, file, code) {
    this.#forgetUnread(workerId, file);
    if (TRANSIENT_CODES.has(code)) this.#unread.set(workerId, file);
    else this.discard(file);
  }

  /**
   * @param {number} workerId
   * @param {string | undefined} newer file of the worker
   */
  #forgetUnread(workerId, newer) {
    const file = this.#unread.get(workerId);
    this.#unread.delete(workerId);
    if (file !== undefined && file !== newer) this.discard(file);
  }

  /**
   * Retains a snapshot for the next thread, or removes it if there will be none.
   *
   * @param {number} workerId
   * @param {string} file
   * @param {Buffer} snapshot
   */
  #retain(workerId, file, snapshot) {
    if (this.#lastSnapshots === undefined) this.#spool?.unlink(file);
    else if (this.#lastSnapshots.store(workerId, file, snapshot)) this.#store.requestFullDictionary(workerId);
  }

  /**
   * @param {Omit<Answer, 'workerId'>} answer
   * @returns {Buffer}
   */
  #snapshotOf({ file, maxBytes, snapshot, bytes }) {
    if (file !== undefined) return this.#take(file, maxBytes);
    if (bytes !== undefined) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    return fromBase64(snapshot ?? '');
  }

  /**
   * Removes a snapshot without reading it.
   *
   * @param {string} file bare name in the spool
   */
  discard(file) {
    try {
      this.#spool?.unlink(file);
    } catch (error) {
      debug('%s cannot be removed: %s', file, error);
    }
  }

  /**
   * Adds a dead worker's numbers to the retired totals.
   *
   * @param {number} workerId
   * @param {import('./retirement').Death} [death] absent if it is tried again
   */
  retire(workerId, death) {
    if (!this.#retirement.retire(workerId, death)) return;
    this.#again.delete(workerId);
    this.#unusable.delete(workerId);
    this.#unread.delete(workerId);
    this.#unreadable.delete(workerId);
    this.#lastSnapshots?.forget(workerId);
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
   * @returns {Generator<void, RenderResult>}
   */
  *render({ formats, custom, final, facts }) {
    const start = performance.now();
    for (const [workerId, file] of [...this.#unread]) this.answer({ workerId, file });
    const again = [...this.#again];
    // Read before the merge: it drops series that are too old, and this page still shows them.
    const { isEmpty } = this.#store;
    if (again.length > 0 && !final) return { ...this.#outcome(again, start), isEmpty };
    this.#again.clear();
    for (const workerId of this.#retirement.unread) this.retire(workerId);
    this.#merged = yield* this.#store.merge(new Set(custom));
    const waiting = this.#merged.flatMap(family => ('metrics' in family ? [family] : []));
    if (waiting.length > 0) return { ...this.#outcome(again, start), isEmpty, custom: waiting };
    const bodies = yield* this.finish({ formats, aggregated: [], facts });
    return { ...this.#outcome(again, start), isEmpty, bodies };
  }

  /**
   * @param {number[]} again
   * @param {number} start when the render began, by performance.now()
   * @returns {Omit<RenderResult, 'isEmpty'>}
   */
  #outcome(again, start) {
    return {
      known: Array.from(this.#store.workers(), ({ id, journalPosition }) => [id, journalPosition]),
      again,
      unreadable: [...this.#unreadable],
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
   * @returns {Generator<void, Body[]>}
   */
  *finish({ formats, aggregated, facts }) {
    let next = 0;
    const families = this.#merged.flatMap(family => {
      if ('view' in family) return family.view;
      const metric = aggregated[next++];
      if (metric === null) this.#store.countFailure('aggregator', family.name, 'its result is not a metric');
      return metric ? sampleFamily(metric, {}) : [];
    });
    this.#merged = [];
    const selfFamilies = facts === undefined ? [] : this.#selfFamilies(facts);
    /** @type {Map<string, Body>} */
    const texts = new Map();
    /** @type {Body[]} */
    const bodies = [];
    for (const format of formats) {
      const key = `${textKeyOf(format)} ${format.selfMetrics}`;
      let text = texts.get(key);
      if (text === undefined) {
        text = yield* this.#write(format.selfMetrics ? [...families, ...selfFamilies] : families, format);
        texts.set(key, text);
      }
      if (format.gzip) bodies.push(compressBody(text));
      else bodies.push(bodies.includes(text) ? { ...text, buffer: text.buffer.slice(0) } : text);
      yield;
    }
    for (const text of texts.values()) if (!bodies.includes(text)) this.reuse(text.buffer);
    return bodies;
  }

  /** @param {ArrayBuffer} memory of an earlier page, for a later one */
  reuse(memory) {
    this.#pagePool.put(memory);
  }

  /**
   * Releases the spool's lock.
   *
   * @param {{remove?: boolean}} [options] whether to remove the directory, default true
   */
  async close({ remove = true } = {}) {
    if (!remove) this.#retirement.save();
    this.#closed = true;
    clearTimeout(this.#reopenTimer);
    this.#retirement.close();
    await this.#spool?.close({ remove });
  }

  /**
   * @param {import('../../exposition/text-format').Family[]} families
   * @param {Format} format
   * @returns {Generator<void, Body>}
   */
  *#write(families, { openMetrics, names }) {
    const shown = selectFamilies(families, names);
    const body = yield* renderBytes(shown, openMetrics, this.#pagePool.take());
    // A page of some families does not say how long the next one is.
    if (names === undefined) this.#pagePool.setLastLength(body.length);
    return body;
  }

  /** @param {PrimaryFacts} facts */
  #selfFamilies(facts) {
    const state = { ...this.#store.state(), unusable: this.#unusable };
    const metrics = selfMetrics(facts, state, this.refused, Date.now());
    return metrics.map(metric => sampleFamily(metric, {}));
  }

  /**
   * @param {string} file
   * @param {number} [maxBytes]
   */
  #take(file, maxBytes) {
    const spool = this.#spool;
    if (spool === undefined) throw Object.assign(new Error('there is no directory'), { code: 'ENOENT' });
    return spool.read(file, maxBytes);
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

/** @param {string} text */
function fromBase64(text) {
  // In an ArrayBuffer of its own, because columns are views that start at a multiple of 8.
  const buffer = Buffer.allocUnsafeSlow(Buffer.byteLength(text, 'base64'));
  return buffer.subarray(0, buffer.write(text, 'base64'));
}

module.exports = { Aggregator };
