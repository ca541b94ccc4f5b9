'use strict';

// Compacts a table of which every use of a row is noted (expiring-table.js), without a step that holds the
// loop: a row is copied with its label set, and once more if it has been used since. New rows are in the
// order of the old ones' numbers, not of their first use.

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
   * To be called whenever a row may change, begin or end.
   *
   * @param {number} old
   */
  note(old) {
    if (old < this.next) this.#changed.add(old);
  }

  step() {
    const isLast = super.step() && this.#copyChanged();
    // From now on, a child that has bound to a row before has to do so again, which is noted.
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
