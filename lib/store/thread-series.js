'use strict';

// Runs with the aggregator. One thread of this process as a source of the store. The thread sends nothing:
// for each page, label sets are read from its log, and numbers from the memory in which it records.

const { ThreadMirror } = require('../source/thread-mirror');
const { DEFAULT_LABELS, viewOf } = require('../registry/metric-view');
const { TableSource } = require('./table-source');
const { RetiredSource } = require('./retired-source');
const { jsonSource, problemOf } = require('./worker-series');

/**
 * If no page was written for this time, or for the maximum idle time of the metric if that is longer, rows
 * that end are not kept: no page has shown them.
 */
const UNREAD_MILLISECONDS = 300_000;

/** @typedef {import('./cluster-family').Source} Source */

/**
 * One metric: its source, and the last copies.
 *
 * @typedef {object} TableCopy
 * @property {TableSource} source
 * @property {Float64Array[]} pages
 * @property {Digest[]} digests by row
 */

/** @typedef {{version: number, centroids: Float64Array}} Digest */

class ThreadSeries {
  #mirror = new ThreadMirror((...ended) => this.#end(...ended));
  /** Rows that have expired, or that the program has removed, since the last capture. */
  #endings = newEndings();
  /** How many rows have ended since the log began. */
  #endedCount = 0;
  /** When the numbers were last read, by performance.now(). */
  #readAt = performance.now();
  /** @type {WeakMap<object, TableCopy>} by metric */
  #tables = new WeakMap();
  /**
   * Summaries whose digests are to be read.
   *
   * @type {{source: Source, digests: Digest[], digestOf: (row: number) => any}[]}
   */
  #summaries = [];
  #onUnreadable;

  /**
   * @param {number} id
   * @param {(stage: string, name: unknown, error: unknown) => void} onUnreadable called for each metric that
   *   is left out, with its name
   */
  constructor(id, onUnreadable) {
    this.id = id;
    /** Like the incarnation of a process. */
    this.incarnation = `thread ${id}`;
    this.#onUnreadable = onUnreadable;
    /** How many ended rows to skip, because an earlier thread has read them. */
    this.skippedEndings = 0;
    /** @type {Source[]} as of the last refresh() */
    this.sources = [];
    /** @type {import('../source/failure-counts').Failure[]} */
    this.failures = [];
    /** Milliseconds since the epoch. */
    this.capturedAt = 0;
    this.snapshotBytes = 0;
  }

  /**
   * Adds what the thread has shared.
   *
   * @param {import('../source/thread-mirror').SharedParts} parts
   */
  add(parts) {
    this.#mirror.add(parts);
  }

  /**
   * Reads the log.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  read() {
    return this.#mirror.read();
  }

  /** Copies all numbers in one step, so that all metrics show the same moment. */
  capture() {
    const sources = this.#takeEndings();
    this.#readAt = performance.now();
    /** @type {import('../source/failure-counts').Failure[]} */
    const failures = [];
    this.capturedAt = Date.now();
    for (const registry of this.#mirror.registries) {
      const defaults = Object.entries(registry[DEFAULT_LABELS]);
      for (const metric of registry.getMetricsAsArray()) {
        try {
          const source = this.#sourceOf(metric, defaults);
          if (source !== undefined) sources.push(source);
        } catch (error) {
          this.#onUnreadable(viewOf(metric) === undefined ? 'json' : 'merge', metric.name, error);
        }
        const { overflowCount = 0, expiredCount = 0 } = viewOf(metric)?.table ?? {};
        if (overflowCount > 0) failures.push(['max-series', metric.name, overflowCount]);
        if (expiredCount > 0) failures.push(['expired', metric.name, expiredCount]);
      }
    }
    this.sources = sources;
    this.failures = failures;
  }

  /** @type {import('../source/thread-mirror').OnEnded} */
  #end(view, row, isRemoved, defaults) {
    if (++this.#endedCount <= this.skippedEndings) return;
    if (!RetiredSource.keeps(view)) return;
    const unread = Math.max(UNREAD_MILLISECONDS, view.table.maxIdleSeconds * 1000);
    if (performance.now() - this.#readAt >= unread) return;
    try {
      const { source } = /** @type {any} */ (this.#endings.find(each => each.isRemoved === isRemoved));
      source.totalsFor(view, defaults).addRow(view, row, defaults, 0);
    } catch (error) {
      this.#onUnreadable('merge', view.name, error);
    }
  }

  /** @returns {Source[]} the rows that have ended since the last capture */
  #takeEndings() {
    const endings = this.#endings.filter(({ source }) => !source.isEmpty);
    if (endings.length > 0) this.#endings = newEndings();
    return endings.flatMap(({ source, isRemoved }) => {
      const ended = { batch: this.#endedCount, isRemoved };
      return source.totals.flatMap(totals =>
        totals.sources().map(own => ({ ...own, workerId: this.id, ended })),
      );
    });
  }

  /**
   * Reads the digests that have changed.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *readDigests() {
    for (const { source, digests, digestOf } of this.#summaries.splice(0)) {
      for (const row of source.order) {
        const digest = digestOf(row);
        const { version } = digest;
        if (digests[row]?.version !== version) digests[row] = { version, centroids: digest.centroids };
        yield;
      }
    }
  }

  /**
   * @param {any} metric
   * @param {[string, string][]} defaults default labels of its registry
   * @returns {Source | undefined}
   * @throws {Error} if it cannot be read
   */
  #sourceOf(metric, defaults) {
    const view = viewOf(metric);
    if (view === undefined) {
      const { json } = metric;
      return json && jsonSource(this.id, json, defaults);
    }
    const { digestOf, exemplars, buckets } = view;
    let table = this.#tables.get(metric);
    if (table === undefined) {
      const problem = problemOf(view);
      if (problem !== undefined) throw new RangeError(problem);
      table = { source: new TableSource(view, this.id, defaults), pages: [], digests: [] };
      this.#tables.set(metric, table);
    }
    const { pages, digests } = table;
    const source = table.source.read({
      digestOf: digestOf && (row => digests[row]),
      exemplars: exemplars && (() => placed(exemplars)),
      // Read only when they are merged.
      buckets,
    });
    source.pages.forEach((page, i) => {
      if (pages[i]?.length === page.length) pages[i].set(page);
      else pages[i] = page.slice();
    });
    if (digestOf !== undefined) this.#summaries.push({ source, digests, digestOf });
    return { ...source, pages };
  }
}

function newEndings() {
  return [false, true].map(isRemoved => ({ isRemoved, source: new RetiredSource() }));
}

/**
 * @param {import('../metric/exemplar').Exemplars} exemplars
 * @returns {import('../source/exemplars').PlacedExemplar[]}
 */
function placed(exemplars) {
  return Array.from(exemplars.slots(), ({ row, column, slot }) => ({ row, column, exemplar: slot.exemplar }));
}

module.exports = { ThreadSeries };
