'use strict';

const { histogramQuantile } = require('../concurrency/scrape-window');

/** @typedef {import('../concurrency/scrape-window').ScrapeWindow} ScrapeWindow */

/**
 * The figures of one setting, from the scrapes of all rounds. Rates are over the time of all rounds together.
 */
class SettingFigures {
  #windows;

  /**
   * @param {string} size MiB, or 'default'
   * @param {ScrapeWindow[]} windows one a round
   */
  constructor(size, windows) {
    this.size = size;
    this.#windows = windows;
  }

  /** Tasks per second. */
  get throughput() {
    return this.#rate('task_duration_seconds_count');
  }

  /** Scavenges per second. */
  get scavenges() {
    return this.#rate('nodejs_gc_runs_total', { kind: 'minor' });
  }

  /** Share of the time that scavenges take, from 0 to 1. */
  get minorShare() {
    return this.#rate('nodejs_gc_pause_seconds_total', { kind: 'minor' });
  }

  /** Share of the time that all garbage collection takes, from 0 to 1. */
  get share() {
    return this.#rate('nodejs_gc_pause_seconds_total');
  }

  /** The same, round by round. */
  get shares() {
    return this.#windows.map(window => window.rate('nodejs_gc_pause_seconds_total'));
  }

  /** Major collections per second. */
  get majors() {
    return this.#rate('nodejs_gc_runs_total', { kind: 'major' });
  }

  /**
   * Bytes per second by which the old space grew while it grew: tasks' objects that were still in use at
   * their second scavenge. A lower bound, because a major collection between two scrapes hides the growth
   * before it.
   */
  get promoted() {
    const rises = this.#windows.map(window => window.rises('nodejs_heap_space_used_bytes', { space: 'old' }));
    return rises.reduce((sum, rise) => sum + rise, 0) / this.#seconds;
  }

  /** Maximum size of the old space, in bytes. */
  get oldSpace() {
    return this.#max('nodejs_heap_space_used_bytes', { space: 'old' });
  }

  /** The semi-space in bytes: the setting, or half of the new space that Node.js chose. */
  get semiSpace() {
    return this.size === 'default' ? this.newSpace / 2 : Number(this.size) * 2 ** 20;
  }

  /** Maximum committed size of the new space, in bytes. */
  get newSpace() {
    return this.#max('nodejs_heap_space_committed_bytes', { space: 'new' });
  }

  /** Maximum physical size of the new space, in bytes. */
  get newSpacePhysical() {
    return this.#max('nodejs_heap_space_physical_bytes', { space: 'new' });
  }

  /** Maximum resident memory of the process, in bytes. */
  get residentMemory() {
    return this.#max('process_resident_memory_bytes');
  }

  /**
   * @param {string} operation
   * @returns {number} seconds
   */
  p99(operation) {
    const counts = new Map();
    for (const window of this.#windows) {
      for (const { bound, count } of window.buckets('task_duration_seconds', { operation })) {
        counts.set(bound, (counts.get(bound) ?? 0) + count);
      }
    }
    const buckets = Array.from(counts, ([bound, count]) => ({ bound, count }));
    return histogramQuantile(0.99, buckets);
  }

  get #seconds() {
    return this.#windows.reduce((sum, window) => sum + window.seconds, 0);
  }

  #rate(name, labels) {
    return this.#windows.reduce((sum, window) => sum + window.increase(name, labels), 0) / this.#seconds;
  }

  #max(name, labels) {
    return Math.max(...this.#windows.map(window => window.max(name, labels)));
  }
}

module.exports = { SettingFigures };
