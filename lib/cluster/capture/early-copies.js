'use strict';

// Runs in any process that records. If a capture has to wait for asynchronous hooks, the numbers of other
// metrics are copied before it: of those whose hooks have ended, in the turn of the hooks; of those without a
// hook, when the program is about to reset or remove them.

const { timedSection } = require('../../event-loop/timed-section');

/** @typedef {import('../../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../../series/series-table').SeriesTable} SeriesTable */
/** @typedef {Omit<import('../wire/snapshot-encoder').CaptureEntry, 'defaults'>} Copy */

class EarlyCopies {
  #extrasOf;
  /** @type {Map<SeriesTable, {copy: Copy, epoch: number}>} by table; `epoch` is the table's at that moment */
  #copies = new Map();
  /** @type {SeriesTable[]} to be copied if the program resets them */
  #watched = [];

  /**
   * @param {{view: MetricView, hasHook: boolean}[]} metrics all but those whose hooks have not ended
   * @param {(view: MetricView) => Pick<Copy, 'digests' | 'exemplars'>} extrasOf
   */
  constructor(metrics, extrasOf) {
    this.#extrasOf = extrasOf;
    timedSection('worker:copy', () => {
      for (const { view, hasHook } of metrics) {
        if (hasHook) this.#copy(view);
        else this.#watch(view);
      }
    });
  }

  /** @param {MetricView} view */
  #copy(view) {
    const { table } = view;
    const copy = { ...this.#extrasOf(view), numbers: table.captured() };
    this.#copies.set(table, { copy, epoch: table.epoch });
  }

  /** @param {MetricView} view */
  #watch(view) {
    const { table } = view;
    table.beforeReset = () => {
      table.beforeReset = undefined;
      this.#copy(view);
    };
    this.#watched.push(table);
  }

  /** To be called when the hooks have ended: from now on a reset shows. */
  end() {
    for (const table of this.#watched) table.beforeReset = undefined;
  }

  /**
   * @param {SeriesTable} table
   * @returns {Copy | undefined} undefined if it was not copied, or a compaction has renumbered its rows since
   */
  of(table) {
    const early = this.#copies.get(table);
    return early?.epoch === table.epoch ? early.copy : undefined;
  }
}

module.exports = { EarlyCopies };
