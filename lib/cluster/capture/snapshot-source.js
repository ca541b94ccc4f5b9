'use strict';

// A worker's registries as a source of snapshots: one number a snapshot, one journal, one incarnation a process.

const { randomBytes } = require('node:crypto');
const { viewOf, DEFAULT_LABELS } = require('../../registry/metric-view');
const { SeriesJournal } = require('./series-journal');
const { DigestEncoder } = require('./digest-encoder');
const { ExemplarEncoder } = require('./exemplar-encoder');
const { CollectHooks } = require('./collect-hooks');
const { timedSection } = require('../../event-loop/timed-section');
const { runInSlices } = require('../../event-loop/slices');
const { encodeSnapshot, stringifyJson } = require('../wire/snapshot-encoder');

class SnapshotSource {
  #incarnation = randomBytes(16).toString('hex');
  #sequence = 0;
  #journal = new SeriesJournal();
  #digests = new DigestEncoder();
  #exemplars = new ExemplarEncoder();
  #hooks = new CollectHooks();
  /** @type {Map<string, [stage: string, name: string, count: number]>} */
  #failures = new Map();
  /** @type {WeakMap<object, string>} by metric: what its own get() returned last */
  #lastJson = new WeakMap();

  /** @param {() => Iterable<any>} registries those that take part */
  constructor(registries) {
    this.registries = registries;
  }

  /**
   * Whatever may take its time: hooks, somebody's own metrics, digests. Never rejects.
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

  /** What may take its time without running anybody's hooks. */
  async encode() {
    const views = this.#metrics().flatMap(metric => viewOf(metric) ?? []);
    // Before anything is encoded by row numbers.
    await runInSlices(compactionSteps(views), COMPACTION_SLICE_MILLISECONDS);
    await this.#digests.prepare(views);
    await this.#exemplars.prepare(views);
  }

  /**
   * Encodes the state of this instant. The chunks are right only until the next number is recorded.
   *
   * @param {number} workerId
   * @param {{incarnation: string, epoch: number, series: number} | undefined} known
   * @param {boolean} [isLast] whether to encode also what has changed since prepare(), however long that takes
   * @returns {{chunks: Uint8Array[], bytes: number}}
   */
  capture(workerId, known, isLast = false) {
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
    const ours = known?.incarnation === this.#incarnation ? known : undefined;
    this.#journal.note(entries.flatMap(({ view }) => view ?? []));
    this.#journal.settle(ours);
    const capture = {
      workerId,
      incarnation: this.#incarnation,
      sequence: ++this.#sequence,
      capturedAt: Date.now(),
      defaultLabels,
      entries,
      failures: [...this.#failures.values(), ...overflows(entries)],
    };
    return encodeSnapshot(capture, this.#journal, ours);
  }

  /**
   * Counts something that went wrong on the way; the numbers travel with each snapshot.
   *
   * @param {string} stage
   * @param {string} name of the metric, or ''
   * @param {unknown} reason for the debug log
   */
  countFailure(stage, name, reason) {
    debug('%s %s failed: %s', stage, name, reason);
    const key = `${stage} ${name}`;
    const failure = this.#failures.get(key);
    if (failure !== undefined) failure[2]++;
    else if (this.#failures.size < MAX_FAILURE_KINDS) this.#failures.set(key, [stage, name, 1]);
  }

  /** @returns {any[]} */
  #metrics() {
    // A metric that is in two registries has one hook.
    return [...new Set([...this.registries()].flatMap(registry => registry.getMetricsAsArray()))];
  }

  /**
   * Somebody's own metric, whose get() is what a `collect` hook is for ours.
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
          // Written at once: it may be changed before the capture, and a failure is this metric's alone.
          if (json != null) this.#lastJson.set(metric, stringifyJson(json));
        },
      };
      this.#hookOf.set(metric, hook);
    }
    return hook;
  }

  /** @type {WeakMap<object, {name: string, collect: () => Promise<void>}>} */
  #hookOf = new WeakMap();
}

/**
 * What metrics had no room for. They count themselves; a metric that is in two registries is told once.
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
    // A table of another release of this package may not count.
    if (overflowCount > 0) byTable.set(view.table, ['max-series', view.name, overflowCount]);
  }
  return [...byTable.values()];
}

/**
 * @param {import('../../exposition/live-family').MetricView[]} views
 * @returns {Generator<void>} yields where others may have the loop
 */
function* compactionSteps(views) {
  for (const { table } of views) {
    const steps = table.compactionSteps();
    while (!timedSection('worker:compact', () => steps.next()).done) yield;
  }
}

const COMPACTION_SLICE_MILLISECONDS = 0.3;

// Names of metrics are the program's, so there are few of them; a program that invents names must not make this grow.
const MAX_FAILURE_KINDS = 1000;

const debug = require('node:util').debuglog('prom-client-cluster');

module.exports = { SnapshotSource };
