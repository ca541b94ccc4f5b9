'use strict';

// Counts the bytes that garbage collections free.
//
// Only V8's profiler reports them, and it is expensive: for each collection it takes the statistics of all
// heap spaces twice (0.05 to 0.3 ms, growing with the heap), holds some 4 kB of text, and needs 20 to 50 µs
// to hand them over. So it runs on a budget. Up to ten collections a second are all profiled, except those
// that handing over causes. Beyond that the profiler takes samples of 16 collections, and pauses after each.
// The others are assumed to have freed what recent ones of their kind did; the observer reports how many
// there were.

const { kindOf } = require('./gc-kinds');

/** Records per sample. The profiler hands that many over in less than a millisecond. */
const RECORDS_PER_WINDOW = 16;
/** The budget. At 0.3 ms a record this is 0.3 % of a CPU. */
const MILLISECONDS_PER_RECORD = 100;
/** Weight of a record in an estimate once the next one has come: half after one window. */
const WEIGHT_OF_OLDER = 0.5 ** (1 / RECORDS_PER_WINDOW);
/**
 * The profiler pauses no longer than this, even after thousands of collections in one synchronous section.
 */
const LONGEST_PAUSE = 60_000;

/**
 * @typedef {object} Profiler a v8.GCProfiler
 * @property {() => void} start
 * @property {() => {statistics: GcRecord[]} | undefined} stop
 */

/** @typedef {{heapStatistics: {usedHeapSize: number}}} HeapState */
/** @typedef {{gcType: string, beforeGC: HeapState, afterGC: HeapState}} GcRecord */

/**
 * The counts of one kind.
 *
 * @typedef {object} Kind
 * @property {number} unprofiled collections that were observed minus those that were profiled. Briefly
 *   negative when the profiler reports a collection before the observer does
 * @property {number} recentBytes bytes that recent ones have freed; older ones have less weight
 * @property {number} recentRuns how many these are
 */

/**
 * @typedef {object} Clock
 * @property {() => number} now milliseconds, monotone
 * @property {(fn: () => void, milliseconds: number) => {unref: () => void}} setTimeout
 * @property {(timer: any) => void} clearTimeout
 */

class ReclaimedBytes {
  /** @type {Map<string, Kind>} */
  #kinds = new Map();
  /** @type {Profiler | undefined} */
  #profiler;
  #runsInWindow = 0;
  /** When the profiler was started. */
  #startedAt = 0;
  /** @type {any} */
  #timer;
  #createProfiler;
  #record;
  #clock;

  /**
   * Starts the profiler.
   *
   * @param {() => Profiler} createProfiler
   * @param {(kind: string, bytes: number) => void} record adds to the bytes that collections of a kind have
   *   freed
   * @param {Clock} clock
   */
  constructor(createProfiler, record, clock) {
    this.#createProfiler = createProfiler;
    this.#record = record;
    this.#clock = clock;
    this.#start();
  }

  /**
   * Reports a collection that the observer has seen. Counts the records once there are enough for a sample,
   * so that the profiler never holds more than these.
   *
   * @param {string} kind as of kindOf()
   */
  addRun(kind) {
    this.#countsOf(kind).unprofiled++;
    if (++this.#runsInWindow >= RECORDS_PER_WINDOW) this.drain();
  }

  /**
   * Counts the records, and estimates what collections before them that were not profiled have freed. While
   * the profiler pauses there is no estimate: without a new sample it would be too low, as the young
   * generation grows under load.
   */
  drain() {
    if (this.#profiler === undefined) return;
    // Handing over the records allocates, and may cause a collection that no profiler records. Its bytes are
    // estimated.
    const records = this.#profiler.stop()?.statistics ?? [];
    this.#profiler = undefined;
    for (const record of records) this.#count(record);
    this.#estimateUnprofiled();
    const pause = this.#startedAt + records.length * MILLISECONDS_PER_RECORD - this.#clock.now();
    if (pause <= 0) {
      this.#start();
      return;
    }
    this.#timer = this.#clock.setTimeout(() => this.#start(), Math.min(pause, LONGEST_PAUSE));
    this.#timer.unref();
  }

  /** Stops the profiler after a last drain. */
  stop() {
    this.drain();
    this.#estimateUnprofiled();
    this.#profiler?.stop();
    this.#profiler = undefined;
    this.#clock.clearTimeout(this.#timer);
  }

  #start() {
    this.#runsInWindow = 0;
    this.#startedAt = this.#clock.now();
    this.#profiler = this.#createProfiler();
    this.#profiler.start();
  }

  /** @param {GcRecord} record */
  #count({ gcType, beforeGC, afterGC }) {
    const kind = kindOf(gcType);
    const counts = this.#countsOf(kind);
    // The heap may be larger afterwards, because the collector itself allocates.
    const freed = Math.max(0, beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize);
    counts.unprofiled--;
    counts.recentBytes = counts.recentBytes * WEIGHT_OF_OLDER + freed;
    counts.recentRuns = counts.recentRuns * WEIGHT_OF_OLDER + 1;
    this.#record(kind, freed);
  }

  #estimateUnprofiled() {
    for (const [kind, counts] of this.#kinds) {
      // Collections of a kind that was never profiled wait for its first sample.
      if (counts.unprofiled <= 0 || counts.recentRuns === 0) continue;
      this.#record(kind, Math.round((counts.unprofiled * counts.recentBytes) / counts.recentRuns));
      counts.unprofiled = 0;
    }
  }

  /** @param {string} kind */
  #countsOf(kind) {
    let counts = this.#kinds.get(kind);
    if (counts === undefined) {
      counts = { unprofiled: 0, recentBytes: 0, recentRuns: 0 };
      this.#kinds.set(kind, counts);
    }
    return counts;
  }
}

module.exports = { ReclaimedBytes, RECORDS_PER_WINDOW, MILLISECONDS_PER_RECORD };
