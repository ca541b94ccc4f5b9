'use strict';

// Runs with the aggregator; in a member of a cluster or group on its event loop. The registries of one
// thread, as far as it has published them: its metrics and label sets come from the log, its numbers from
// shared memory. If a record cannot be applied, nothing more is read, and what was read before stays.

const { DEFAULT_LABELS, viewOf } = require('../registry/metric-view');
const { LogReader } = require('./shared-log');
const { MirrorMetric, MirrorCustomMetric } = require('./mirror-metric');
const RECORD = require('./log-records');
const { debug } = require('../options/debug-log');

/** This takes 0.05 ms. */
const RECORDS_PER_STEP = 128;

/** @typedef {{[DEFAULT_LABELS]: Record<string, string>, getMetricsAsArray: () => any[]}} MirrorRegistry */

/**
 * What a thread has sent: chunks of its log, and memory by number.
 *
 * @typedef {object} SharedParts
 * @property {SharedArrayBuffer[]} [chunks]
 * @property {[number: number, memory: SharedArrayBuffer][]} [memories]
 */

/**
 * @typedef {object} MirrorEntry
 * @property {MirrorRegistry} registry
 * @property {MirrorMetric | MirrorCustomMetric} metric
 * @property {unknown} [replaces] number of the previous metric, which is shown until the thread has published
 *   this one completely and has dropped the previous one
 */

/**
 * Called for each row that the thread has removed, or that has expired there: its numbers stay as they are.
 *
 * @callback OnEnded
 * @param {import('../exposition/live-family').MetricView} view of its metric
 * @param {number} row
 * @param {boolean} isRemoved
 * @param {Record<string, string>} defaults default labels of its registry
 * @returns {void}
 */

class ThreadMirror {
  #log = new LogReader();
  #onEnded;
  /** @type {[number: number, memory: SharedArrayBuffer][]} the last one that was used, and later ones */
  #memories = [];
  /** @type {Map<string, MirrorRegistry>} by default labels */
  #registries = new Map();
  /** @type {Map<number, MirrorEntry>} */
  #metrics = new Map();
  #isBroken = false;

  /** @param {OnEnded} [onEnded] */
  constructor(onEnded = () => {}) {
    this.#onEnded = onEnded;
  }

  /** @returns {MirrorRegistry[]} */
  get registries() {
    return [...new Set(Array.from(this.#metrics.values(), ({ registry }) => registry))];
  }

  /**
   * Adds what the thread has sent.
   *
   * @param {SharedParts} parts
   */
  add({ chunks = [], memories = [] }) {
    for (const chunk of chunks) this.#log.add(chunk);
    this.#memories.push(...memories);
  }

  /**
   * Reads what the thread has published so far. It may publish faster than it is read.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *read() {
    const end = this.#log.published;
    try {
      for (let i = 1; !this.#isBroken && this.#log.skipped < end && this.#readRecord(); i++)
        if (i % RECORDS_PER_STEP === 0) yield;
    } catch (error) {
      this.#isBroken = true;
      debug('what a thread has published cannot be read: %O', error);
    }
  }

  /** @returns {boolean} false if there is none that can be read yet */
  #readRecord() {
    const log = this.#log;
    if (!log.next()) return false;
    const hasMemory = log.kind >= RECORD.PAGE;
    const memory = hasMemory ? this.#memoryOf(log.integer(1)) : undefined;
    // The message with the memory may arrive a moment after the record.
    if (hasMemory && memory === undefined) return false;
    this.#apply(log, memory);
    log.skip();
    return true;
  }

  /**
   * @param {number} number
   * @returns {SharedArrayBuffer | undefined} undefined if it has not arrived yet
   */
  #memoryOf(number) {
    const memories = this.#memories;
    // The thread has already sent the next memory, and sends an earlier one again if it is needed.
    while (memories.length > 0 && memories[0][0] < number) memories.shift();
    return memories[0]?.[0] === number ? memories[0][1] : undefined;
  }

  /**
   * @param {LogReader} record
   * @param {SharedArrayBuffer | undefined} memory of the record
   */
  #apply(record, memory) {
    const number = record.integer(0);
    switch (record.kind) {
      case RECORD.DEFINE: {
        const { replaces, defaults, ...definition } = JSON.parse(record.text);
        const Mirror = definition.layout === undefined ? MirrorCustomMetric : MirrorMetric;
        const metric = new Mirror(definition);
        this.#metrics.set(number, { registry: this.#registryWith(defaults), metric, replaces });
        break;
      }
      case RECORD.DROP:
        this.#metrics.delete(number);
        break;
      default: {
        const { metric, registry } = /** @type {any} */ (this.#metrics.get(number));
        metric.apply(record, memory);
        if (record.kind !== RECORD.REMOVE) break;
        const [row, isExpired] = record.integersFrom(1);
        this.#onEnded(/** @type {any} */ (viewOf(metric)), row, isExpired === 0, registry[DEFAULT_LABELS]);
      }
    }
  }

  /**
   * @param {[string, string][]} defaults its default labels
   * @returns {MirrorRegistry}
   */
  #registryWith(defaults) {
    const key = JSON.stringify(defaults);
    let registry = this.#registries.get(key);
    if (registry === undefined) {
      const getMetricsAsArray = () => this.#of(/** @type {MirrorRegistry} */ (registry));
      registry = { [DEFAULT_LABELS]: Object.fromEntries(defaults), getMetricsAsArray };
      this.#registries.set(key, registry);
    }
    return registry;
  }

  /**
   * @param {MirrorRegistry} registry
   * @returns {any[]} its metrics that are shown
   */
  #of(registry) {
    return [...this.#metrics.values()]
      .filter(entry => entry.registry === registry && !this.#metrics.has(/** @type {any} */ (entry.replaces)))
      .map(({ metric }) => metric);
  }
}

module.exports = { ThreadMirror };
