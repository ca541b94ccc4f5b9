'use strict';

// Compacts a table that notes every use of a row (expiring-table.js), without a long step: each row is copied
// with its label set, and again if it was used after that. The new rows are in the order of the old row
// numbers, not of first use.

const { Compaction } = require('./compaction');
const { LiveRows } = require('./live-rows');

const ROWS_PER_STEP = 64;

class GradualCompaction extends Compaction {
  /** @type {Set<number>} old rows that have changed since they were copied */
  #changed = new Set();
  /** @type {Set<number>} new rows that are not live any more */
  #removed = new Set();

  /** @param {import('./expiring-table').ExpiringTable} table */
  constructor(table) {
    super(table, table.labelNames);
    this.startCopying(table.starts !== undefined);
  }

  /**
   * To be called whenever a row may change, start or end.
   *
   * @param {number} old
   */
  note(old) {
    if (old < this.next) this.#changed.add(old);
  }

  step() {
    const isLast = super.step() && this.#copyChanged();
    // Children that are bound to these rows must bind again, so that their next use is noted.
    /** @type {import('./expiring-table').ExpiringTable} */ (this.table).rebind();
    return isLast;
  }

  /**
   * @protected
   * @param {number} old
   */
  moveRow(old) {
    this.copyRow(old, this.newRowOf(old));
  }

  /** @returns {boolean} whether all are copied */
  #copyChanged() {
    let count = 0;
    for (const old of this.#changed) {
      if (count++ === ROWS_PER_STEP) return false;
      this.#changed.delete(old);
      if (this.table.isLive(old)) {
        this.moveRow(old);
        this.#removed.delete(this.newRowOf(old));
      } else if (this.isMoved(old)) {
        this.#removed.add(this.newRowOf(old));
      }
    }
    return true;
  }

  /** @param {number} old */
  forget(old) {
    if (this.isMoved(old)) this.#removed.add(this.newRowOf(old));
    super.forget(old);
  }

  finish() {
    this.endCopying();
    if (this.#removed.size === 0) return undefined;
    const live = LiveRows.all(this.index.rowCount);
    for (const row of this.#removed) live.remove(row);
    return live;
  }
}

module.exports = { GradualCompaction };
