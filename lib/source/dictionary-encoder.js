'use strict';

// Runs in any process that records. Encodes the dictionary parts of its snapshots: in steps before a capture,
// and in the capture what was recorded meanwhile.

const { runThrough } = require('../event-loop/slices');
const { DictionaryPart } = require('./dictionary-part');
const { SeriesJournal } = require('./series-journal');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./series-journal').JournalPosition} JournalPosition */

class DictionaryEncoder {
  #incarnation;
  #journal = new SeriesJournal();

  /** @param {string} incarnation of this process */
  constructor(incarnation) {
    this.#incarnation = incarnation;
  }

  /**
   * @param {MetricView} view of a metric of the last capture
   * @returns {number} the metric's number
   */
  numberOf(view) {
    return this.#journal.numberOf(view);
  }

  /**
   * @param {JournalPosition | undefined} readerPosition what the reader has of the journal, from a message
   * @returns {DictionaryPart} an empty one, which continues that
   */
  start(readerPosition) {
    const start = this.#journal.startFor(this.#positionOf(readerPosition));
    return new DictionaryPart(this.#journal.epoch, start);
  }

  /**
   * Adds what metrics have that the dictionary does not have yet.
   *
   * @param {DictionaryPart} dictionary
   * @param {MetricView[]} views of all metrics
   * @param {(dictionary: DictionaryPart) => void} [onProgress] called after each piece
   * @returns {Generator<void>} yields after each piece
   */
  *extend(dictionary, views, onProgress) {
    this.#journal.note(views);
    yield* this.#addRest(dictionary, onProgress);
  }

  /**
   * @param {DictionaryPart} dictionary
   * @param {(dictionary: DictionaryPart) => void} [onProgress]
   * @returns {Generator<void>} yields after each piece
   */
  *#addRest(dictionary, onProgress) {
    const steps = dictionary.add(this.#restOf(dictionary) ?? [], this.#journal.length);
    while (!steps.next().done) {
      onProgress?.(dictionary);
      yield;
    }
  }

  /**
   * The dictionary for a capture.
   *
   * @param {DictionaryPart | undefined} dictionary that was encoded ahead
   * @param {MetricView[]} views of all metrics
   * @param {JournalPosition | undefined} readerPosition what the reader has of the journal, from a message
   * @returns {DictionaryPart} that one or another, with everything that the reader does not have
   */
  complete(dictionary, views, readerPosition) {
    this.#journal.note(views);
    this.#journal.forgetBefore(this.#positionOf(readerPosition));
    const start = this.#journal.startFor(this.#positionOf(readerPosition));
    // It is unusable if the journal has begun a new epoch since, or if the reader has lost its state.
    const isUsable = dictionary !== undefined && dictionary.start <= start && this.#restOf(dictionary);
    const usable = isUsable ? dictionary : this.start(readerPosition);
    runThrough(this.#addRest(usable));
    return usable;
  }

  /**
   * @param {DictionaryPart} dictionary
   * @returns {readonly import('./series-journal').Segment[] | undefined} the segments after it in the
   *   journal; undefined if it cannot be continued
   */
  #restOf({ epoch, end }) {
    return this.#journal.after({ epoch, series: end });
  }

  /**
   * @param {JournalPosition | undefined} readerPosition from a message
   * @returns {JournalPosition | undefined} undefined unless it is a position in this process's journal
   */
  #positionOf(readerPosition) {
    const isPosition =
      readerPosition?.incarnation === this.#incarnation &&
      Number.isInteger(readerPosition.series) &&
      readerPosition.series <= this.#journal.length;
    return isPosition ? readerPosition : undefined;
  }
}

module.exports = { DictionaryEncoder };
