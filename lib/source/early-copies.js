'use strict';

// Runs in any process that records. If a capture must wait for asynchronous hooks, the numbers of other
// metrics are copied early. Metrics whose hooks have ended are copied in the same turn; metrics without a
// hook are copied when the program is about to reset or remove their numbers.

const { timedSection } = require('../event-loop/timed-section');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('../series/series-table').WaitingCapture} WaitingCapture */
/** @typedef {Omit<import('./columns-encoder').CaptureEntry, 'defaults'>} Copy */

/** @implements {WaitingCapture} */
class EarlyCopies {
  #extrasOf;
  /** @type {Map<SeriesTable, {copy: Copy, epoch: number}>} by table; `epoch` is the table's at that moment */
  #copies = new Map();
  /** @type {Map<SeriesTable, MetricView | undefined>} by table: views of what is not copied yet */
  #views = new Map();

  /**
   * @param {{view: MetricView, hasHook: boolean}[]} metrics all metrics except those whose hooks have not
   *   ended
   * @param {(view: MetricView) => Pick<Copy, 'extras'>} extrasOf
   */
  constructor(metrics, extrasOf) {
    this.#extrasOf = extrasOf;
    /** Number of the last batch of ended rows that was closed at the start. */
    this.closedBatch = 0;
    timedSection('worker:copy', () => {
      for (const { view, hasHook } of metrics) {
        const { table } = view;
        this.#views.set(table, hasHook ? undefined : view);
        (table.captures ??= new Set()).add(this);
        if (hasHook) this.#copy(view);
      }
    });
  }

  /** @param {SeriesTable} table whose numbers are about to be reset or removed */
  beforeReset(table) {
    const view = this.#views.get(table);
    // Set first, because copying may remove expired rows, which calls this method again.
    this.#views.set(table, undefined);
    if (view !== undefined) this.#copy(view);
  }

  /** @param {MetricView} view */
  #copy(view) {
    const { table } = view;
    const copy = { ...this.#extrasOf(view), numbers: table.captured() };
    this.#copies.set(table, { copy, epoch: table.epoch });
  }

  /** To be called when the hooks have ended: later resets are visible to the capture. */
  end() {
    for (const table of this.#views.keys()) {
      table.captures?.delete(this);
      if (table.captures?.size === 0) table.captures = undefined;
    }
    this.#views.clear();
  }

  /**
   * @param {SeriesTable} table
   * @returns {Copy | undefined} undefined if it was not copied, or a compaction has renumbered its rows since
   *   then
   */
  of(table) {
    const early = this.#copies.get(table);
    return early?.epoch === table.epoch ? early.copy : undefined;
  }
}

module.exports = { EarlyCopies };
