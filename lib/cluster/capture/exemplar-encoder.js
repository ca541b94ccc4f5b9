'use strict';

// A metric's exemplars as bytes. Each exemplar is encoded once, and again only when it was replaced; what is put
// together from them is put together in slices that let the worker's requests through. An exemplar may then be a
// moment older than the numbers beside it, which it illustrates but does not count.

const { ByteWriter } = require('../wire/byte-buffers');
const { encodeExemplar } = require('../wire/exemplars');
const { runThrough, runInSlices } = require('../../event-loop/slices');

const SLICE_MILLISECONDS = 0.3;

/** @typedef {import('../../metric/exemplar').Exemplars} Exemplars */
/** @typedef {{version: number, epoch: number, count: number, bytes: Uint8Array}} ExemplarBlock */

class ExemplarEncoder {
  /** @type {WeakMap<Exemplars, ExemplarBlock>} */
  #blocks = new WeakMap();

  /**
   * Encodes what has changed, with a rest whenever a slice is used up.
   *
   * @param {import('../../exposition/live-family').MetricView[]} views
   */
  async prepare(views) {
    await runInSlices(this.#encodeChanged(views), SLICE_MILLISECONDS);
  }

  /**
   * @param {import('../../exposition/live-family').MetricView[]} views
   * @returns {Generator<void>} yields between exemplars
   */
  *#encodeChanged(views) {
    for (const { exemplars, table } of views) {
      if (exemplars === undefined || this.#blocks.get(exemplars)?.version === exemplars.version) continue;
      yield* this.#encode(exemplars, table.epoch);
    }
  }

  /**
   * @param {import('../../exposition/live-family').MetricView} view
   * @returns {ExemplarBlock | undefined} as it was prepared, if rows have their numbers still; undefined where there is
   *   no exemplar
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
    this.#blocks.set(exemplars, { version, epoch, count, bytes: writer.finish() });
  }
}

module.exports = { ExemplarEncoder };
