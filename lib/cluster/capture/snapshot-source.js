'use strict';

// Runs in the worker, and in the primary for the primary's own metrics, on the application's event loop.
// Captures the registries of a process as snapshots. Whatever takes long is done before the capture, in
// slices.

const { randomBytes } = require('node:crypto');
const { viewOf, DEFAULT_LABELS } = require('../../registry/metric-view');
const { SeriesJournal } = require('./series-journal');
const { DigestEncoder } = require('./digest-encoder');
const { ExemplarEncoder } = require('./exemplar-encoder');
const { CollectHooks } = require('./collect-hooks');
const { timedSection } = require('../../event-loop/timed-section');
const { runThrough, runInSlices } = require('../../event-loop/slices');
const { DictionaryPart } = require('../wire/dictionary-part');
const { encodeSnapshot, stringifyJson } = require('../wire/snapshot-encoder');

const SLICE_MILLISECONDS = 0.3;

/** @typedef {import('../wire/messages').JournalPosition} JournalPosition */

class SnapshotSource {
  #incarnation = randomBytes(16).toString('hex');
  #sequence = 0;
  #journal = new SeriesJournal();
  #digests = new DigestEncoder();
  #exemplars = new ExemplarEncoder();
  #hooks = new CollectHooks();
  /** @type {Map<string, [stage: string, name: string, count: number]>} */
  #failures = new Map();
  /** @type {WeakMap<object, string>} by custom metric object: what its get() returned last */
  #lastJson = new WeakMap();
  /** @type {WeakMap<object, {name: string, collect: () => Promise<void>}>} by custom metric object */
  #hookOf = new WeakMap();

  /** @param {() => Iterable<any>} registries called at each capture */
  constructor(registries) {
    this.registries = registries;
  }

  /**
   * Runs the hooks, then encode(). Never rejects.
   *
   * @param {number} timeout milliseconds for the hooks
   * @param {boolean} [isLast] see CollectHooks.run()
   */
  async prepare(timeout, isLast) {
    const hooks = this.#metrics().map(metric =>
      viewOf(metric) === undefined ? this.#asHook(metric) : metric,
    );
    await this.#hooks.run(
      hooks,
      timeout,
      (name, reason) => this.countFailure('collect', name, reason),
      isLast,
    );
    await this.encode();
  }

  /** Compacts tables, and encodes digests and exemplars, in slices. */
  async encode() {
    const views = viewsOf(this.#metrics());
    // First, because it renumbers rows.
    await runInSlices(compactionSteps(views), SLICE_MILLISECONDS);
    await runInSlices(this.#digests.encodeChanged(views), SLICE_MILLISECONDS);
    await runInSlices(this.#exemplars.encodeChanged(views), SLICE_MILLISECONDS);
  }

  /**
   * Encodes the dictionary part for the next capture, in slices. The capture adds label sets that are
   * recorded later.
   *
   * @param {JournalPosition | undefined} known what the reader has of the journal
   * @param {(dictionary: DictionaryPart) => void} [onProgress] called after each piece
   * @returns {Promise<DictionaryPart>}
   */
  async encodeDictionary(known, onProgress) {
    this.#journal.note(viewsOf(this.#metrics()));
    const dictionary = this.#startDictionary(known);
    await runInSlices(this.#dictionarySteps(dictionary, onProgress), SLICE_MILLISECONDS);
    return dictionary;
  }

  /**
   * @param {DictionaryPart} dictionary
   * @param {((dictionary: DictionaryPart) => void) | undefined} onProgress
   * @returns {Generator<void>} yields after each piece
   */
  *#dictionarySteps(dictionary, onProgress) {
    const steps = dictionary.add(this.#restOf(dictionary) ?? [], this.#journal.length);
    while (!steps.next().done) {
      onProgress?.(dictionary);
      yield;
    }
  }

  /**
   * Encodes the current state, synchronously. The chunks refer to the tables' memory: they are valid until
   * the next number is recorded.
   *
   * @param {number} workerId
   * @param {JournalPosition | undefined} known what the reader has of the journal
   * @param {object} [options]
   * @param {boolean} [options.isLast] whether to include digests that have changed since prepare(), however
   *   long encoding them takes
   * @param {DictionaryPart} [options.dictionary] from encodeDictionary()
   * @returns {import('../wire/snapshot-encoder').EncodedSnapshot}
   */
  capture(workerId, known, { isLast = false, dictionary } = {}) {
    const defaultLabels = [];
    /** @type {import('../wire/snapshot-encoder').CaptureEntry[]} */
    const entries = [];
    for (const registry of this.registries()) {
      const defaults = defaultLabels.push(registry[DEFAULT_LABELS] ?? {}) - 1;
      for (const metric of registry.getMetricsAsArray()) {
        const view = viewOf(metric);
        if (view !== undefined) {
          view.beforeRead?.();
          const digests = this.#digests.digestsOf(view, isLast);
          entries.push({ defaults, view, digests, exemplars: this.#exemplars.blockOf(view) });
        } else if (this.#lastJson.has(metric)) {
          entries.push({ defaults, json: this.#lastJson.get(metric) });
        }
      }
    }
    this.#journal.note(entries.flatMap(({ view }) => view ?? []));
    this.#journal.forgetBefore(this.#positionOf(known));
    const capture = {
      workerId,
      incarnation: this.#incarnation,
      sequence: ++this.#sequence,
      capturedAt: Date.now(),
      defaultLabels,
      entries,
      failures: [...this.#failures.values(), ...overflows(entries)],
    };
    return encodeSnapshot(capture, this.#journal, this.#completed(dictionary, known));
  }

  /**
   * @param {DictionaryPart | undefined} dictionary
   * @param {JournalPosition | undefined} known
   * @returns {DictionaryPart} with everything that the reader does not have
   */
  #completed(dictionary, known) {
    const start = this.#journal.startFor(this.#positionOf(known));
    // It is unusable if the journal has begun a new epoch since, or if the reader has lost its state.
    const isUsable = dictionary !== undefined && dictionary.start <= start && this.#restOf(dictionary);
    const usable = isUsable ? dictionary : this.#startDictionary(known);
    runThrough(usable.add(this.#restOf(usable) ?? [], this.#journal.length));
    return usable;
  }

  /** @param {JournalPosition | undefined} known */
  #startDictionary(known) {
    const start = this.#journal.startFor(this.#positionOf(known));
    return new DictionaryPart(this.#journal.epoch, start);
  }

  /**
   * @param {DictionaryPart} dictionary
   * @returns {readonly import('./series-journal').Segment[] | undefined} the segments after it in the
   *   journal; undefined if it cannot be continued
   */
  #restOf({ epoch, end }) {
    return this.#journal.after({ epoch, series: end });
  }

  /**
   * @param {JournalPosition | undefined} known from a message
   * @returns {JournalPosition | undefined} undefined unless it is a position in this process's journal
   */
  #positionOf(known) {
    const isPosition =
      known?.incarnation === this.#incarnation &&
      Number.isInteger(known.series) &&
      known.series <= this.#journal.length;
    return isPosition ? known : undefined;
  }

  /**
   * Counts a failure. Each snapshot carries the counts.
   *
   * @param {string} stage
   * @param {unknown} metric the metric's name, '' for none; a custom metric object may have anything as its
   *   name
   * @param {unknown} reason for the debug log
   */
  countFailure(stage, metric, reason) {
    debug('%s %O failed: %O', stage, metric, reason);
    const name = typeof metric === 'string' ? metric.slice(0, MAX_NAME_LENGTH) : `a ${typeof metric} as name`;
    const key = `${stage} ${name}`;
    const failure = this.#failures.get(key);
    if (failure !== undefined) failure[2]++;
    else if (this.#failures.size < MAX_FAILURE_KINDS) this.#failures.set(key, [stage, name, 1]);
  }

  /** @returns {any[]} */
  #metrics() {
    // The hook of a metric that is in two registries runs once.
    return [...new Set([...this.registries()].flatMap(registry => registry.getMetricsAsArray()))];
  }

  /**
   * Treats get() of a custom metric object as a `collect` hook.
   *
   * @param {any} metric
   */
  #asHook(metric) {
    let hook = this.#hookOf.get(metric);
    if (hook === undefined) {
      hook = {
        name: metric.name,
        collect: async () => {
          const json = await metric.get();
          // Encoded here: the program may change the object before the capture, and an error affects only
          // this metric.
          if (json != null) this.#lastJson.set(metric, stringifyJson(json));
        },
      };
      this.#hookOf.set(metric, hook);
    }
    return hook;
  }
}

/**
 * @param {any[]} metrics
 * @returns {import('../../exposition/live-family').MetricView[]}
 */
function viewsOf(metrics) {
  return metrics.flatMap(metric => viewOf(metric) ?? []);
}

/**
 * How many label sets exceeded each metric's limit. A metric that is in two registries counts once.
 *
 * @param {import('../wire/snapshot-encoder').CaptureEntry[]} entries
 * @returns {[stage: string, name: string, count: number][]}
 */
function overflows(entries) {
  /** @type {Map<object, [stage: string, name: string, count: number]>} */
  const byTable = new Map();
  for (const { view } of entries) {
    if (view === undefined) continue;
    const { overflowCount } = view.table;
    // undefined if another release of this package made the table and does not count.
    if (overflowCount > 0) byTable.set(view.table, ['max-series', view.name, overflowCount]);
  }
  return [...byTable.values()];
}

/**
 * @param {import('../../exposition/live-family').MetricView[]} views
 * @returns {Generator<void>} yields where a slice may end
 */
function* compactionSteps(views) {
  for (const { table } of views) {
    const steps = table.compactionSteps();
    while (!timedSection('worker:compact', () => steps.next()).done) yield;
  }
}

// Usually few metrics fail. The limits bound the memory if a program generates names.
const MAX_FAILURE_KINDS = 1000;
const MAX_NAME_LENGTH = 1000;

const debug = require('node:util').debuglog('prom-client-cluster');

module.exports = { SnapshotSource };
