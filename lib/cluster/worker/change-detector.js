'use strict';

// Runs in the worker. Detects whether the process has recorded anything since the last call, at no cost to
// recording: it compares a 32-bit hash of all numbers. Hashing 100,000 numbers takes 0.25 ms, a third of the
// time that writing them takes. A change that does not change the hash (one in four billion) is detected with
// the next change.

const { runInSlices } = require('../../event-loop/slices');
const { readableMetrics } = require('../../source/readable-metrics');
const { readableDefaults } = require('../../registry/readable-defaults');
const { viewOf } = require('../../registry/metric-view');

const SLICE_MILLISECONDS = 0.3;

class ChangeDetector {
  /** @type {number | undefined} hash at the last call */
  #last = undefined;
  /** @type {WeakMap<object, number>} by table: a unique number, so that a new table changes the hash */
  #numbers = new WeakMap();
  #nextNumber = 1;
  /** How many milliseconds of the event loop's time it has taken so far. */
  spent = 0;

  /** Makes the next hasChanged() return true. */
  forget() {
    this.#last = undefined;
  }

  /**
   * @param {Iterable<any>} registries
   * @returns {Promise<boolean>} whether anything has changed since the last call
   */
  async hasChanged(registries) {
    const hash = await runInSlices(this.#hashOf(registries), SLICE_MILLISECONDS, slice => {
      const start = performance.now();
      const step = slice();
      this.spent += performance.now() - start;
      return step;
    });
    const isSame = this.#last === hash;
    this.#last = hash;
    return !isSame;
  }

  /**
   * @param {Iterable<any>} registries
   * @returns {Generator<void, number>} yields where a slice may end
   */
  *#hashOf(registries) {
    let hash = 1;
    for (const part of this.#parts(registries)) {
      hash = hashed(hash, part);
      yield;
    }
    return hash;
  }

  /**
   * @param {Iterable<any>} registries
   * @returns {Generator<ArrayLike<number>>}
   */
  *#parts(registries) {
    for (const registry of registries) {
      yield Buffer.from(JSON.stringify(Object.entries(readableDefaults(registry))));
      for (const metric of readableMetrics(registry)) {
        const view = viewOf(metric);
        if (view === undefined) continue;
        const { table, exemplars } = view;
        const version = exemplars?.version ?? 0;
        yield [this.#numberOf(table), table.epoch, table.changes, table.rowCount, table.liveCount, version];
        for (const page of table.pages) yield new Int32Array(page.buffer, page.byteOffset, page.length * 2);
        if (view.digestOf !== undefined) {
          // A different distribution may have the same sum and count.
          for (const row of table.liveRows()) yield [row, view.digestOf(row).version];
        }
      }
    }
  }

  /** @param {object} table */
  #numberOf(table) {
    let number = this.#numbers.get(table);
    if (number === undefined) this.#numbers.set(table, (number = this.#nextNumber++));
    return number;
  }
}

/**
 * @param {number} hash
 * @param {ArrayLike<number>} integers
 */
function hashed(hash, integers) {
  for (let i = 0; i < integers.length; i++) {
    hash = Math.imul(hash ^ integers[i], 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash;
}

module.exports = { ChangeDetector };
