'use strict';

// What the primary has done off its event loop: reads snapshot files, keeps the cluster store, writes the text. Runs in
// the aggregator thread; where no thread can be started, in slices on the primary's own loop.

const { debuglog } = require('node:util');
const { ClusterStore } = require('../store/cluster-store');
const { renderBytes } = require('../../exposition/text-bytes');
const { PagePool } = require('./page-pool');
const { sampleFamily } = require('../../exposition/sample-family');
const { compress } = require('./gzip');
const { selfMetrics } = require('./self-metrics');
const { KeptSnapshots } = require('./kept-snapshots');
const { isExitFile, isUnfinished } = require('../wire/file-names');
const { Spool } = require('../spool/spool');

const debug = debuglog('prom-client-cluster');

const RETIRED_FILE = 'retired.snap';

// What another try in the same round may put right: the worker knows more than it told, or its file is gone.
const ASK_AGAIN_CODES = new Set(['dictionary-start', 'dictionary', 'numbers', 'ENOENT']);

// Writing the retired totals takes a twentieth of the time, even if workers die all the time.
const SAVING_PAUSE = 20;
const SAVE_AGAIN_MILLISECONDS = 5000;
const SHORT_PAUSE = 100; // milliseconds; below it the pause is not worth a timer

// A file that cannot be read for one of these may be readable the next time.
const TRANSIENT_CODES = new Set(['EMFILE', 'ENFILE', 'EIO', 'EAGAIN', 'EINTR', 'ENOMEM']);

/** @typedef {{openMetrics: boolean, gzip: boolean, selfMetrics: boolean}} Format */

/** @typedef {import('./self-metrics').PrimaryFacts} PrimaryFacts */

/**
 * @typedef {object} Answer
 * @property {number} workerId
 * @property {string} [file] bare name in the spool
 * @property {string} [snapshot] base64
 * @property {Uint8Array} [bytes] the snapshot itself, in memory of its own
 * @property {unknown[]} [metrics] JSON of a stock worker
 */

/** @typedef {import('./gzip').Body} Body */

/**
 * @typedef {object} RenderResult
 * @property {[number, import('../wire/messages').JournalPosition | undefined][]} known by worker
 * @property {number[]} again workers that have to be asked again: their last answer could not be used
 * @property {{aggregator: string, metrics: any[]}[]} [custom] families that the primary has to aggregate itself
 * @property {Body[]} [bodies] by format
 * @property {[string, number][]} refused how many answers were refused so far, by reason
 * @property {ReturnType<ClusterStore['state']>} state
 * @property {number} seconds that it took to add up and write, as far as it went
 * @property {boolean} isEmpty whether no worker's numbers are known
 */

class Aggregator {
  #store;
  /** @type {Spool | undefined} undefined where no directory can be written */
  #spool = undefined;
  #options;
  /** @type {Set<number>} */
  #again = new Set();
  /** @type {Set<number>} workers whose last answer could not be used: they are shown with earlier numbers */
  #unusable = new Set();
  /** @type {number[]} workers that were retired since the totals were written last */
  #unsaved = [];
  /** @type {import('../store/cluster-store').MergedFamily[]} of the render that waits for custom aggregators */
  #merged = [];
  #pagePool = new PagePool();
  #isSaving = false;
  /** When the retired totals may be written again, by performance.now(). */
  #nextSave = 0;
  /** @type {KeptSnapshots | undefined} for the next thread; undefined where there is none to come */
  #kept = undefined;
  /** @type {Set<number>} dead workers of whom a file could not be read yet */
  #unread = new Set();
  #closed = false;

  /**
   * @param {object} options
   * @param {string} [options.directory] first candidate for the spool
   * @param {number} [options.retiredMaxAge] milliseconds
   * @param {string} [options.adopt] directory of a thread that is gone, whose retired totals go on
   * @param {boolean} options.lock see Spool.open
   * @param {(directory: string) => void} options.onDirectory told whenever the spool's directory is another one
   * @param {(workerIds: number[]) => void} options.onRetired told when dead workers are safe among the totals
   */
  constructor(options) {
    this.#options = options;
    this.#store = new ClusterStore({ retiredMaxAge: options.retiredMaxAge });
    /** @type {Map<string, number>} snapshots that were refused, by reason */
    this.refused = new Map();
  }

  /** Makes the spool, or takes over that of a thread that is gone. Never rejects. */
  async open() {
    await this.#openSpool(this.#options.adopt);
    if (this.#options.adopt === undefined) return;
    this.#restoreRetired();
    try {
      for (const workerId of this.#spool?.workers() ?? []) this.#restoreWorker(workerId);
    } catch (error) {
      this.#refuse('restore-worker', error);
    }
  }

  /** @param {string} [adopt] */
  async #openSpool(adopt) {
    const { directory, lock, onDirectory } = this.#options;
    try {
      this.#spool = await Spool.open({ directory, adopt, lock, onLost: reason => this.#onLost(reason) });
      if (lock) this.#kept = new KeptSnapshots(this.#spool);
      onDirectory(this.#spool.directory);
    } catch (error) {
      debug(
        'no directory can be written, snapshots travel over IPC: %o',
        /** @type {any} */ (error).failures ?? error,
      );
      this.#spool = this.#kept = undefined;
      onDirectory('');
    }
  }

  #restoreRetired() {
    try {
      const buffer = this.#spool?.readIfPresent(RETIRED_FILE);
      if (buffer !== undefined) this.#store.restoreRetired(buffer);
    } catch (error) {
      this.#refuse('restore-retired', error);
    }
  }

  /**
   * Goes on from what the thread that is gone has kept of a living worker, and from what it was told of and did not read.
   *
   * @param {number} workerId
   */
  #restoreWorker(workerId) {
    if (this.#store.isClosed(workerId)) {
      this.#spool?.unlinkAllOf(workerId);
      return;
    }
    try {
      for (const snapshot of this.#kept?.of(workerId) ?? []) this.#store.apply(workerId, snapshot);
    } catch (error) {
      this.#refuse('restore-worker', error);
    }
    for (const file of this.#filesOf(workerId)) {
      if (!isExitFile(file)) this.answer({ workerId, file });
    }
    this.#again.delete(workerId);
  }

  /**
   * A directory that vanished is replaced by a new one; nothing was in it that a worker cannot write again.
   *
   * @param {unknown} reason
   */
  async #onLost(reason) {
    debug('the snapshot directory is lost: %o', reason);
    if (this.#closed) return;
    const lost = this.#spool;
    this.#spool = undefined;
    await lost?.close({ remove: false });
    await this.#openSpool();
    // What was kept of the workers went with it: they tell all of it again.
    for (const { id } of this.#store.workers()) this.#store.askForAll(id);
    this.#saveRetired();
  }

  /**
   * Takes over a worker's answer. One that does not fit is refused and counted; the worker's former numbers stand.
   *
   * @param {Answer} answer
   */
  answer({ workerId, file, snapshot, metrics, bytes }) {
    try {
      if (this.#store.isClosed(workerId)) {
        if (file !== undefined) this.#spool?.unlink(file);
      } else if (metrics !== undefined) {
        this.#store.applyJson(workerId, metrics);
      } else {
        const buffer = this.#snapshotOf({ file, snapshot, bytes });
        this.#store.apply(workerId, buffer);
        if (file !== undefined && this.#kept?.keep(workerId, file, buffer)) this.#store.askForAll(workerId);
        if (file !== undefined && this.#kept === undefined) this.#spool?.unlink(file);
        // Worker and directory may have lost each other: others, and the exit files, want a new one.
        if (snapshot !== undefined && this.#spool?.isPresent() === false)
          this.#onLost('a worker found it gone');
      }
      this.#again.delete(workerId);
      this.#unusable.delete(workerId);
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (file !== undefined) this.discard(file);
      this.#unusable.add(workerId);
      this.#refuse(typeof code === 'string' ? code : 'unknown', error);
      if (code === 'dictionary' || code === 'numbers') this.#store.distrust(workerId);
      if (ASK_AGAIN_CODES.has(code)) this.#again.add(workerId);
      if (code === 'ENOENT' && this.#spool?.isPresent() === false) this.#onLost(code);
    }
  }

  /**
   * @param {{file?: string, snapshot?: string, bytes?: Uint8Array}} answer
   * @returns {Buffer}
   */
  #snapshotOf({ file, snapshot, bytes }) {
    if (file !== undefined) return this.#take(file);
    if (bytes !== undefined) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    return fromBase64(snapshot ?? '');
  }

  /**
   * Removes a snapshot unread.
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
   * Adds what a dead worker has counted to the retired totals: its last numbers, or newer ones that it left in a file.
   *
   * @param {number} workerId
   */
  retire(workerId) {
    if (!this.#store.isClosed(workerId) && !this.#readLeft(workerId)) {
      this.#unread.add(workerId);
      return;
    }
    this.#unread.delete(workerId);
    this.#again.delete(workerId);
    this.#unusable.delete(workerId);
    this.#store.retire(workerId);
    this.#kept?.forget(workerId);
    this.#unsaved.push(workerId);
    this.#saveSoon();
  }

  /**
   * Takes over what a dead worker has left in files.
   *
   * @param {number} workerId
   * @returns {boolean} false where one is there and cannot be read at the moment: the process is out of descriptors
   */
  #readLeft(workerId) {
    let isComplete = true;
    for (const file of this.#filesOf(workerId)) {
      try {
        const bytes = this.#spool?.readIfPresent(file);
        if (bytes !== undefined) this.#store.apply(workerId, bytes);
      } catch (error) {
        const { code } = /** @type {any} */ (error);
        if (TRANSIENT_CODES.has(code)) isComplete = false;
        // Half a file of a worker that was killed over it, or one that was applied before, is nothing to worry about.
        const isHalf = isUnfinished(file) || (code === 'length' && !isExitFile(file));
        if (code === 'sequence' || isHalf) debug('%s of a dead worker is left out: %s', file, error);
        else this.#refuse(`exit-${code}`, error);
      }
    }
    return isComplete;
  }

  /**
   * Adds up and writes what is known.
   *
   * @param {object} request
   * @param {Format[]} request.formats
   * @param {string[]} request.custom names of aggregators that only the primary can run
   * @param {boolean} request.final whether to go on although a worker's answer could not be used
   * @param {PrimaryFacts} [request.facts] where a format asks for metrics of the scrape itself
   * @returns {Generator<void, RenderResult>}
   */
  *render({ formats, custom, final, facts }) {
    const start = performance.now();
    const again = [...this.#again];
    // Before the merge drops what is too old, which is shown once more.
    const { isEmpty } = this.#store;
    if (again.length > 0 && !final) return { ...this.#outcome(again, start), isEmpty };
    this.#again.clear();
    for (const workerId of [...this.#unread]) this.retire(workerId);
    if (this.#unsaved.length > 0) this.#saveSoon();
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
      known: Array.from(this.#store.workers(), ({ id, known }) => [id, known]),
      again,
      refused: [...this.refused],
      state: this.#store.state(),
      seconds: (performance.now() - start) / 1000,
    };
  }

  /**
   * Writes what render() has added up.
   *
   * @param {object} request
   * @param {Format[]} request.formats
   * @param {any[]} request.aggregated what became of each family of `custom`: a metric as JSON, or undefined
   * @param {PrimaryFacts} [request.facts]
   * @returns {Generator<void, Body[]>}
   */
  *finish({ formats, aggregated, facts }) {
    let next = 0;
    const families = this.#merged.flatMap(family => {
      if ('view' in family) return family.view;
      const metric = aggregated[next++];
      return metric === undefined || metric === null ? [] : sampleFamily(metric, {});
    });
    this.#merged = [];
    const ofItself = facts === undefined ? [] : this.#selfFamilies(facts);
    /** @type {Map<string, Body>} */
    const texts = new Map();
    /** @type {Body[]} */
    const bodies = [];
    for (const { openMetrics, gzip, selfMetrics } of formats) {
      const key = `${openMetrics} ${selfMetrics}`;
      let text = texts.get(key);
      if (text === undefined) {
        text = yield* this.#write(selfMetrics ? [...families, ...ofItself] : families, openMetrics);
        texts.set(key, text);
      }
      if (gzip) bodies.push(compress(text));
      else bodies.push(bodies.includes(text) ? { ...text, buffer: text.buffer.slice(0) } : text);
      yield;
    }
    for (const text of texts.values()) if (!bodies.includes(text)) this.reuse(text.buffer);
    return bodies;
  }

  /** @param {ArrayBuffer} memory of an earlier text, for the next */
  reuse(memory) {
    this.#pagePool.put(memory);
  }

  /** Ends the spool: releases its lock and removes its directory. */
  async close() {
    this.#closed = true;
    await this.#spool?.close({ remove: true });
  }

  /**
   * @param {import('../../exposition/text-format').Family[]} families
   * @param {boolean} openMetrics
   * @returns {Generator<void, Body>}
   */
  *#write(families, openMetrics) {
    const body = yield* renderBytes(families, openMetrics, this.#pagePool.take());
    this.#pagePool.setLastLength(body.length);
    return body;
  }

  /** @param {PrimaryFacts} facts */
  #selfFamilies(facts) {
    const state = { ...this.#store.state(), unusable: this.#unusable };
    const metrics = selfMetrics(facts, state, this.refused, Date.now());
    return metrics.map(metric => sampleFamily(metric, {}));
  }

  /** @param {string} file */
  #take(file) {
    const spool = this.#spool;
    if (spool === undefined) throw Object.assign(new Error('there is no directory'), { code: 'ENOENT' });
    return spool.read(file);
  }

  /** @param {number} workerId */
  #filesOf(workerId) {
    try {
      return this.#spool?.filesOfWorker(workerId) ?? [];
    } catch (error) {
      debug('the snapshot directory cannot be read: %s', error);
      return [];
    }
  }

  /** Several deaths at once are written down at once, and many of them after each other take a small part of the time. */
  #saveSoon() {
    if (this.#isSaving) return;
    this.#isSaving = true;
    const save = () => {
      this.#isSaving = false;
      const start = performance.now();
      this.#saveRetired();
      this.#nextSave = performance.now() + (performance.now() - start) * SAVING_PAUSE;
    };
    const pause = this.#nextSave - performance.now();
    // Until then the files of the dead stay, and tell a new thread what it needs.
    if (pause > SHORT_PAUSE) setTimeout(save, pause).unref();
    else setImmediate(save);
  }

  /** Writes the retired totals down before the files of those who are in it are removed. */
  #saveRetired() {
    if (this.#closed) return;
    const workerIds = this.#unsaved.splice(0);
    try {
      this.#spool?.writeAtomically(RETIRED_FILE, [this.#store.encodeRetired()]);
      for (const workerId of workerIds) this.#spool?.unlinkAllOf(workerId);
    } catch (error) {
      // The totals themselves are in memory; only a thread that dies now would miss them. Tried again at the next scrape,
      // and after a while.
      this.#refuse('save-retired', error);
      this.#unsaved.unshift(...workerIds);
      setTimeout(() => this.#saveSoon(), SAVE_AGAIN_MILLISECONDS).unref();
      return;
    }
    if (workerIds.length > 0) this.#options.onRetired(workerIds);
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
  // Memory of its own that starts at a multiple of 8: columns are views of it.
  const buffer = Buffer.allocUnsafeSlow(Buffer.byteLength(text, 'base64'));
  return buffer.subarray(0, buffer.write(text, 'base64'));
}

module.exports = { Aggregator };
