'use strict';

// Tells whether a process has recorded anything since it was asked last, without a trace on the recording path: 32 bits
// of all numbers, 0.25 ms for 100,000 of them, a third of what writing them takes. A change that hides in the
// same 32 bits (one of four billion) shows with the next one.

const { runInSlices } = require('../../event-loop/slices');
const { viewOf, DEFAULT_LABELS } = require('../../registry/metric-view');

const SLICE_MILLISECONDS = 0.3;

class Fingerprint {
  /** @type {number | undefined} */
  #last = undefined;
  /** @type {WeakMap<object, number>} tables by the order in which they were met */
  #numbers = new WeakMap();
  #nextNumber = 1;

  /** The next answer is yes. */
  forget() {
    this.#last = undefined;
  }

  /**
   * @param {Iterable<any>} registries
   * @returns {Promise<boolean>} whether they hold something else than at the last call
   */
  async hasChanged(registries) {
    const hash = await runInSlices(this.#hashOf(registries), SLICE_MILLISECONDS);
    const isSame = this.#last === hash;
    this.#last = hash;
    return !isSame;
  }

  /**
   * @param {Iterable<any>} registries
   * @returns {Generator<void, number>} yields where others may have the loop
   */
  *#hashOf(registries) {
    let hash = 1;
    for (const part of this.#parts(registries)) {
      hash = mixed(hash, part);
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
      yield Buffer.from(textOf(registry[DEFAULT_LABELS] ?? {}));
      for (const metric of registry.getMetricsAsArray()) {
        const view = viewOf(metric);
        if (view === undefined) continue;
        const { table, exemplars } = view;
        const version = exemplars?.version ?? 0;
        yield [
          this.#numberOf(table),
          table.epoch,
          table.generation,
          table.rowCount,
          table.liveCount,
          version,
        ];
        for (const page of table.pages) yield new Int32Array(page.buffer, page.byteOffset, page.length * 2);
        if (view.digestOf !== undefined) {
          // Another distribution may have the same sum and count.
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

/** @param {Record<string, unknown>} labels */
function textOf(labels) {
  return JSON.stringify(Object.keys(labels).map(name => [name, String(labels[name])]));
}

/**
 * @param {number} hash
 * @param {ArrayLike<number>} integers
 */
function mixed(hash, integers) {
  for (let i = 0; i < integers.length; i++) {
    hash = Math.imul(hash ^ integers[i], 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash;
}

module.exports = { Fingerprint };
