'use strict';

// Runs in any process that records. Encodes the exemplars of its metrics. Each exemplar is encoded once. A
// metric's block is built in slices, and the event loop handles requests in between. An exemplar may
// therefore be slightly older than the numbers of the same snapshot.

const { ByteWriter } = require('./byte-buffers');
const { encodeExemplar } = require('./exemplars');
const { runThrough } = require('../event-loop/slices');

/** @typedef {import('../metric/exemplar').Exemplars} Exemplars */
/** @typedef {{version: number, epoch: number, count: number, chunks: Uint8Array[]}} ExemplarBlock */

class ExemplarEncoder {
  /** @type {WeakMap<Exemplars, ExemplarBlock>} */
  #blocks = new WeakMap();

  /**
   * Encodes the exemplars of metrics that have new ones.
   *
   * @param {import('../exposition/live-family').MetricView[]} views
   * @returns {Generator<void>} yields between exemplars
   */
  *encodeChanged(views) {
    for (const { exemplars, table } of views) {
      if (exemplars === undefined || this.#blocks.get(exemplars)?.version === exemplars.version) continue;
      yield* this.#encode(exemplars, table.epoch);
    }
  }

  /**
   * @param {import('../exposition/live-family').MetricView} view
   * @returns {ExemplarBlock | undefined} as encodeChanged() encoded it, or encoded again if the rows have
   *   been renumbered since; undefined if there is no exemplar
   */
  blockOf({ exemplars, table }) {
    if (exemplars === undefined) return undefined;
    if (this.#blocks.get(exemplars)?.epoch !== table.epoch) runThrough(this.#encode(exemplars, table.epoch));
    const block = this.#blocks.get(exemplars);
    return block?.count === 0 ? undefined : block;
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
    this.#blocks.set(exemplars, { version, epoch, count, chunks: writer.chunks() });
  }
}

module.exports = { ExemplarEncoder };
