'use strict';

// Runs in any process that records. Encodes the exemplars of its metrics. Each exemplar is encoded once. A
// metric's block is built in slices, and the event loop handles requests in between. An exemplar may
// therefore be slightly older than the numbers of the same snapshot.

const { ByteWriter } = require('./byte-buffers');
const { encodeExemplar } = require('./exemplars');
const { EXEMPLARS } = require('./source-format');
const { runThrough } = require('../event-loop/slices');

/** @typedef {import('../metric/exemplar').Exemplars} Exemplars */
/** @typedef {{version: number, epoch: number, block: import('./extras').ExtraBlock}} Encoded */

class ExemplarEncoder {
  /** @type {WeakMap<Exemplars, Encoded>} */
  #encoded = new WeakMap();

  /**
   * Encodes the exemplars of a metric if it has new ones.
   *
   * @param {import('../exposition/live-family').MetricView} view
   * @returns {Generator<void>} yields between exemplars
   */
  *encodeChanged({ exemplars, table }) {
    if (exemplars === undefined || this.#encoded.get(exemplars)?.version === exemplars.version) return;
    yield* this.#encode(exemplars, table.epoch);
  }

  /**
   * @param {import('../exposition/live-family').MetricView} view
   * @returns {import('./extras').ExtraBlock[]} as encodeChanged() encoded it, or encoded again if the rows
   *   have been renumbered since; none if there is no exemplar
   */
  blocksOf({ exemplars, table }) {
    if (exemplars === undefined) return [];
    if (this.#encoded.get(exemplars)?.epoch !== table.epoch) runThrough(this.#encode(exemplars, table.epoch));
    const { block } = /** @type {Encoded} */ (this.#encoded.get(exemplars));
    return block.count === 0 ? [] : [block];
  }

  /**
   * @param {Exemplars} exemplars
   * @param {number} epoch
   * @returns {Generator<void>} yields between exemplars
   */
  *#encode(exemplars, epoch) {
    const { version } = exemplars;
    const writer = new ByteWriter(4096);
    let count = 0;
    for (const { row, column, slot } of exemplars.slots()) {
      slot.encoded ??= encodeExemplar(row, column, slot.exemplar);
      writer.bytes(slot.encoded);
      if (++count % 16 === 0) yield;
    }
    writer.align(8);
    const block = { kind: EXEMPLARS, count, chunks: writer.chunks() };
    this.#encoded.set(exemplars, { version, epoch, block });
  }
}

module.exports = { ExemplarEncoder };
