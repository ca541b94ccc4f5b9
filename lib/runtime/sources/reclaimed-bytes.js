'use strict';

// How many bytes collections free. Only V8's profiler tells, and it is not cheap: for each collection it takes the
// statistics of all heap spaces twice (0.05 to 0.3 ms, the more the larger the heap), holds some 4 kB of text, and takes
// 20 to 50 µs to hand them over. So it runs on a budget. Up to ten collections a second it sees all of them, and the
// count is exact. In a storm it sees samples of 16, and those that it missed are taken to have freed what the last ones
// of their kind did; how many they were is known from the observer. Kinds without a name are one kind here: the
// observer has numbers for them and the profiler words, and nothing says which belong together.

const { nameOfWord } = require('./gc-kinds');

/** So many records are handed over at once: in less than a millisecond. */
const RECORDS_PER_WINDOW = 16;
/** The budget: one record each so many milliseconds. At 0.3 ms a record this is 0.3 % of a CPU. */
const MILLISECONDS_PER_RECORD = 100;
const BURST = RECORDS_PER_WINDOW * MILLISECONDS_PER_RECORD;
/** A single section of the program that collects thousands of times is not paid for until the end of days. */
const LONGEST_PAUSE = 60_000;

/**
 * @typedef {object} Profiler a v8.GCProfiler
 * @property {() => void} start
 * @property {() => {statistics: GcRecord[]} | undefined} stop
 */

/** @typedef {{heapStatistics: {usedHeapSize: number}}} HeapState */
/** @typedef {{gcType: string, beforeGC: HeapState, afterGC: HeapState}} GcRecord */

/**
 * What is known of one kind.
 *
 * @typedef {object} Kind
 * @property {number} unseen collections that happened less those that were profiled. Below zero for a moment: the
 *   profiler knows of a collection before the observer does
 * @property {number} recentBytes of recent samples, older ones with less weight
 * @property {number} recentRuns
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
  /** @type {GcRecord | undefined} the last one of the profiler before */
  #last;
  #runsInWindow = 0;
  /** When the budget has paid for all that was recorded. */
  #paidAt = -Infinity;
  /** @type {any} */
  #timer;
  #createProfiler;
  #record;
  #clock;
  /** Called before a pause ends: to note the collections that were in it. */
  onResume = () => {};

  /**
   * Begins to record.
   *
   * @param {() => Profiler} createProfiler
   * @param {(name: string, bytes: number) => void} record adds to what collections of a kind have freed
   * @param {Clock} clock
   */
  constructor(createProfiler, record, clock) {
    this.#createProfiler = createProfiler;
    this.#record = record;
    this.#clock = clock;
    this.#profiler = this.#startProfiler();
  }

  /** Whether the profiler runs: then records pile up. */
  get isRecording() {
    return this.#profiler !== undefined;
  }

  /**
   * Notes collections that happened.
   *
   * @param {string} name of their kind, as of nameOfWord()
   * @param {number} runs
   */
  noteRuns(name, runs) {
    this.#kindOf(name).unseen += runs;
    this.#runsInWindow += runs;
  }

  /** Takes over what was recorded where it is enough: between two calls no more is held. */
  drainIfFull() {
    if (this.isRecording && this.#runsInWindow >= RECORDS_PER_WINDOW) this.drain();
  }

  /**
   * Takes over what was recorded, and adds what collections before it that were not profiled have freed by all
   * likelihood. Not while there is nothing new to judge by: the young generation grows in a storm.
   */
  drain() {
    const profiler = this.#profiler;
    if (profiler === undefined) return;
    // The next one starts before this one stops: to hand over records takes memory, and may lead to a collection.
    this.#profiler = this.#isWithinBudget() ? this.#startProfiler() : undefined;
    this.#takeOver(profiler);
    this.#addUnseen();
    if (this.#profiler === undefined) this.#resumeLater();
  }

  /** Ends what runs, after a last drain. */
  stop() {
    this.drain();
    this.#addUnseen();
    this.#profiler?.stop();
    this.#profiler = undefined;
    this.#clock.clearTimeout(this.#timer);
  }

  #startProfiler() {
    const profiler = this.#createProfiler();
    profiler.start();
    return profiler;
  }

  #isWithinBudget() {
    const now = this.#clock.now();
    return this.#paidAfter(this.#runsInWindow, now) <= now;
  }

  /**
   * @param {number} records
   * @param {number} now
   */
  #paidAfter(records, now) {
    const paidAt = Math.max(this.#paidAt, now - BURST) + records * MILLISECONDS_PER_RECORD;
    return Math.min(paidAt, now + LONGEST_PAUSE);
  }

  /** @param {Profiler} profiler */
  #takeOver(profiler) {
    const records = profiler.stop()?.statistics ?? [];
    this.#runsInWindow = 0;
    this.#paidAt = this.#paidAfter(records.length, this.#clock.now());
    // A collection while two profilers ran is the last one of the first and the first one of the second.
    const own = records.length > 0 && isSame(this.#last, records[0]) ? records.slice(1) : records;
    this.#last = this.#profiler === undefined ? undefined : records.at(-1);
    this.#count(own);
  }

  /** @param {GcRecord[]} records */
  #count(records) {
    /** @type {Map<string, number[]>} */
    const bytesByName = new Map();
    for (const { gcType, beforeGC, afterGC } of records) {
      const name = nameOfWord(gcType);
      // The heap may be larger afterwards, by what the collector needs.
      const freed = beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize;
      const bytes = bytesByName.get(name);
      if (bytes === undefined) bytesByName.set(name, [Math.max(0, freed)]);
      else bytes.push(Math.max(0, freed));
    }
    for (const [name, all] of bytesByName) {
      const kind = this.#kindOf(name);
      const bytes = all.reduce((sum, freed) => sum + freed, 0);
      kind.unseen -= all.length;
      kind.recentBytes = kind.recentBytes / 2 + bytes;
      kind.recentRuns = kind.recentRuns / 2 + all.length;
      this.#record(name, bytes);
    }
  }

  #addUnseen() {
    for (const [name, kind] of this.#kinds) {
      // As long as none of a kind was ever profiled, they wait.
      if (kind.unseen <= 0 || kind.recentRuns === 0) continue;
      this.#record(name, Math.round((kind.unseen * kind.recentBytes) / kind.recentRuns));
      kind.unseen = 0;
    }
  }

  #resumeLater() {
    const resume = () => {
      this.onResume();
      this.#runsInWindow = 0;
      this.#profiler = this.#startProfiler();
    };
    this.#timer = this.#clock.setTimeout(resume, Math.max(1, this.#paidAt - this.#clock.now()));
    this.#timer.unref();
  }

  /** @param {string} name */
  #kindOf(name) {
    let kind = this.#kinds.get(name);
    if (kind === undefined) {
      kind = { unseen: 0, recentBytes: 0, recentRuns: 0 };
      this.#kinds.set(name, kind);
    }
    return kind;
  }
}

/**
 * @param {GcRecord | undefined} one
 * @param {GcRecord} other
 */
function isSame(one, other) {
  return (
    one !== undefined &&
    one.gcType === other.gcType &&
    one.beforeGC.heapStatistics.usedHeapSize === other.beforeGC.heapStatistics.usedHeapSize &&
    one.afterGC.heapStatistics.usedHeapSize === other.afterGC.heapStatistics.usedHeapSize
  );
}

module.exports = { ReclaimedBytes, RECORDS_PER_WINDOW, MILLISECONDS_PER_RECORD };
