'use strict';

// Runs with the aggregator; in a member of a cluster or group on its event loop. The registries of one
// thread, as far as it has published them: its metrics and label sets come from the log, its numbers from
// shared memory. After the first invalid record nothing more is read, and what was read before stays.

const { DEFAULT_LABELS } = require('../registry/metric-view');
const { LogReader } = require('./shared-log');
const { MirrorMetric, MirrorCustomMetric, text, checkNames } = require('./mirror-metric');
const RECORD = require('./log-records');
const { debug } = require('../options/debug-log');

/**
 * The position of the memory's number in records that refer to memory.
 *
 * @type {Record<number, number>}
 */
const MEMORY_AT = { [RECORD.PAGE]: 2, [RECORD.OVERFLOW]: 1, [RECORD.DIGESTS]: 1, [RECORD.BUCKETS]: 3 };

/** This takes 0.05 ms. */
const RECORDS_PER_STEP = 128;

/**
 * `defaults`: the default labels as pairs.
 *
 * @typedef {{[DEFAULT_LABELS]: Record<string, string>, defaults: [string, string][],
 *   getMetricsAsArray: () => any[]}} MirrorRegistry
 */

/**
 * What a thread has sent: chunks of its log, and memory by number.
 *
 * @typedef {object} SharedParts
 * @property {SharedArrayBuffer[]} [chunks]
 * @property {[number: number, memory: SharedArrayBuffer][]} [memories]
 */

/**
 * @typedef {object} MirrorEntry
 * @property {number} registry
 * @property {MirrorMetric | MirrorCustomMetric} metric
 * @property {unknown} [replaces] number of the previous metric, which is shown until the thread has published
 *   this one completely and has dropped the previous one
 */

/**
 * Called for each row that the thread has removed, or that has expired there: its numbers stay as they are.
 *
 * @callback OnEnded
 * @param {MirrorMetric} metric
 * @param {number} row
 * @param {boolean} isRemoved
 * @param {[string, string][]} defaults default labels of its registry
 * @returns {void}
 */

class ThreadMirror {
  #log = new LogReader();
  #hookOf;
  #onEnded;
  /** @type {Map<number, SharedArrayBuffer>} by number: the last one that was used, and later ones */
  #memories = new Map();
  /** @type {Map<number, MirrorRegistry>} */
  #registries = new Map();
  /** @type {Map<number, MirrorEntry>} */
  #metrics = new Map();
  #isBroken = false;

  /**
   * @param {import('./mirror-metric').HookOf} [hookOf]
   * @param {OnEnded} [onEnded]
   */
  constructor(hookOf = () => undefined, onEnded = () => {}) {
    this.#onEnded = onEnded;
    this.#hookOf = hookOf;
  }

  /** @returns {MirrorRegistry[]} */
  get registries() {
    return [...this.#registries.values()];
  }

  /**
   * Adds what the thread has sent.
   *
   * @param {SharedParts} parts
   */
  add({ chunks = [], memories = [] }) {
    this.#guard(() => {
      for (const chunk of chunks) this.#log.add(chunk);
      for (const [number, memory] of memories) this.#memories.set(number, memory);
    });
  }

  /**
   * Reads what the thread has published so far. It may publish faster than it is read.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *read() {
    const end = this.#log.published;
    while (this.#log.skipped < end && this.#readSome()) yield;
  }

  /** @returns {boolean} whether there may be more records */
  #readSome() {
    let mayHaveMore = false;
    this.#guard(() => {
      for (let i = 0; i < RECORDS_PER_STEP; i++) if (!this.#readRecord()) return;
      mayHaveMore = true;
    });
    return mayHaveMore;
  }

  /** @returns {boolean} false if there is none that can be read yet */
  #readRecord() {
    const log = this.#log;
    if (!log.next()) return false;
    if (log.kind in MEMORY_AT && !this.#hasMemory(log.integer(MEMORY_AT[log.kind]))) return false;
    this.#apply(log);
    log.skip();
    return true;
  }

  /**
   * @param {number} number
   * @returns {boolean} false if the message with the memory has not arrived yet: it may come a moment after
   *   the record
   */
  #hasMemory(number) {
    // The thread has already sent the next memory, and sends an earlier one again if it is needed.
    for (const earlier of this.#memories.keys()) {
      // They are in order, so the loop stops early: checking all of them for each record would take long.
      if (!(earlier < number)) break;
      this.#memories.delete(earlier);
    }
    return this.#memories.has(number);
  }

  /** @param {() => void} apply */
  #guard(apply) {
    if (this.#isBroken) return;
    try {
      apply();
    } catch (error) {
      this.#isBroken = true;
      debug('what a thread has published cannot be read: %O', error);
    }
  }

  /** @param {LogReader} record */
  #apply(record) {
    const number = record.integer(0);
    switch (record.kind) {
      case RECORD.REGISTRY:
        this.#setDefaultLabels(number, JSON.parse(record.text));
        break;
      case RECORD.DEFINE: {
        const { replaces, ...definition } = JSON.parse(record.text);
        this.#add(number, record.integer(1), new MirrorMetric(number, definition, this.#hookOf), replaces);
        break;
      }
      case RECORD.CUSTOM:
        this.#add(number, record.integer(1), new MirrorCustomMetric(number, record.text, this.#hookOf));
        break;
      case RECORD.DROP:
        this.#metrics.delete(number);
        break;
      default: {
        const entry = this.#metrics.get(number);
        if (entry === undefined) throw new Error('a metric is unknown');
        entry.metric.apply(record, this.#memories);
        if (record.kind === RECORD.REMOVE && record.integer(2) !== RECORD.BEFORE) this.#end(entry, record);
      }
    }
  }

  /**
   * @param {MirrorEntry} entry
   * @param {LogReader} record of a row that has ended
   */
  #end({ metric, registry }, record) {
    const { defaults } = /** @type {MirrorRegistry} */ (this.#registries.get(registry));
    const isRemoved = record.integer(2) === RECORD.REMOVED;
    this.#onEnded(/** @type {MirrorMetric} */ (metric), record.integer(1), isRemoved, defaults);
  }

  /**
   * @param {number} number
   * @param {any} pairs
   */
  #setDefaultLabels(number, pairs) {
    const defaults = pairs.map((/** @type {any} */ [name, value]) => [text(name), text(value)]);
    const labels = Object.fromEntries(defaults);
    checkNames(Object.keys(labels));
    const getMetricsAsArray = () => this.#of(number);
    this.#registries.set(number, { [DEFAULT_LABELS]: labels, defaults, getMetricsAsArray });
  }

  /**
   * @param {number} registry
   * @returns {any[]} its metrics that are shown
   */
  #of(registry) {
    return [...this.#metrics.values()]
      .filter(entry => entry.registry === registry && !this.#metrics.has(/** @type {any} */ (entry.replaces)))
      .map(({ metric }) => metric);
  }

  /**
   * @param {number} number
   * @param {number} registry
   * @param {MirrorMetric | MirrorCustomMetric} metric
   * @param {unknown} [replaces]
   */
  #add(number, registry, metric, replaces) {
    if (!this.#registries.has(registry) || this.#metrics.has(number))
      throw new Error('a metric is not valid');
    this.#metrics.set(number, { registry, metric, replaces });
  }
}

module.exports = { ThreadMirror };
