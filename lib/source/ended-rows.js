'use strict';

// Runs in any process that records. Keeps the counts of rows that end while the process lives, because they
// have expired or the program has removed them. This concerns counters, histograms and summaries: other
// processes may still have the label set, and the sum must not fall. Captures offer these counts until the
// reader has added them to its retired totals. A program that removes a label set and records it again in the
// same step of its code replaces the counts (`remove()`, then `inc()` with a total): the old ones are
// dropped.
//
// Ended rows are grouped into batches. The first capture that offers a batch closes it and gives it the next
// number. So a reader only needs to remember the number of its last batch, and no row counts twice.

const { isLasting } = require('../series/layouts');
const { centroidsOf } = require('../metric/observations');
const { idleClock } = require('../event-loop/idle-clock');
const { growPages } = require('../series/number-pages');
const { grown } = require('../series/row-array');
const { MISSING } = require('../series/label-dictionary');
const { MirrorTable } = require('./mirror-table');

/**
 * Ended rows are dropped if no request comes within this time, or within the maximum idle time of their
 * metric if that is longer. Prometheus itself treats a series that it reads less often as ended.
 */
const UNREAD_MILLISECONDS = 300_000;

/** How often the batches are checked for rows to drop. */
const LOOK_MILLISECONDS = 1000;

const NO_ROWS = new Int32Array(0);

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('../series/series-table').TableFollower} TableFollower */
/** @typedef {import('../metric/time-window-quantiles').TimeWindowQuantiles} Digest */

/**
 * The counts of ended rows of one metric, all with different label sets. Labels are copied as the numbers of
 * their values: to find the text of each would take several times as long.
 */
class Batch {
  #epoch;
  /** By row of the metric: its row here plus 1, or 0. */
  #has = NO_ROWS;
  /** @type {Int32Array[]} by label, and number of a value in the metric: its number here, or 0 */
  #ids;
  /** @type {Digest[]} by row */
  #digests = [];
  /** How many rows cannot be replaced any more. */
  #settled = 0;

  /**
   * @param {MetricView} view of the metric
   * @param {boolean} isRemoved
   * @param {number} since when its first row ended
   */
  constructor(
    { name, help, type, aggregator, layout, windowed, table, digestOf, buckets },
    isRemoved,
    since,
  ) {
    this.since = since;
    this.isRemoved = isRemoved;
    const { maxIdleSeconds, labelNames, width, pageShift, epoch } = table;
    this.#epoch = epoch;
    this.#ids = labelNames.map(() => NO_ROWS);
    this.table = new MirrorTable(labelNames, width, pageShift, { maxIdleSeconds, expiredCount: 0 });
    this.table.starts = this.table.resets = 0;
    /** @type {MetricView} */
    this.view = { name, help, type, aggregator, layout, windowed, maxIdleSeconds, table: this.table };
    // Totals do not include digests of a sliding window.
    if (digestOf !== undefined && !windowed) this.view.digestOf = row => this.#digests[row];
    if (buckets !== undefined) this.view.buckets = buckets.empty();
  }

  /**
   * @param {MetricView} view of the metric
   * @param {number} ended its row
   * @returns {boolean} false if the batch already has that label set, or the metric's rows have other numbers
   */
  add({ table, digestOf, buckets }, ended) {
    if (table.epoch !== this.#epoch || this.#has[ended] > 0) return false;
    const row = this.#addRow(table, ended);
    this.table.setStart(row, table.startAt(ended));
    const offset = table.offsetOf(ended);
    const numbers = table.pageOf(ended).subarray(offset, offset + table.width);
    this.table.pageOf(row).set(numbers, this.table.offsetOf(row));
    if (this.view.digestOf !== undefined)
      this.#digests[row] = keptDigest(/** @type {any} */ (digestOf)(ended));
    if (buckets !== undefined) this.view.buckets?.copyRow(row, buckets, ended);
    return true;
  }

  /**
   * @param {SeriesTable} table of the metric
   * @param {number} ended its row
   * @returns {number} the row here
   */
  #addRow(table, ended) {
    const { rowCount: row, pages, width, pageShift, forms } = this.table;
    growPages(pages, row, width, pageShift);
    const form = table.formOf(ended);
    // Later ones may have labels that the batch does not know.
    if (form >= forms.list.length) forms.list = table.forms.list.slice();
    let text = '';
    const idAt = (/** @type {number} */ position) => {
      const { dictionaries } = /** @type {any} */ (this.table.labelSets);
      const index = /** @type {import('../series/label-index').LabelIndex} */ (table.index);
      const id = index.idAt(ended, position);
      if (id === MISSING) return MISSING;
      if (id >= this.#ids[position].length) this.#ids[position] = grown(this.#ids[position], id + 1);
      if (this.#ids[position][id] === MISSING) {
        text = index.dictionaries[position].values[id];
        this.#ids[position][id] = dictionaries[position].values.length;
      }
      return this.#ids[position][id];
    };
    this.table.follow(row, form, idAt, () => text);
    if (ended >= this.#has.length) this.#has = grown(this.#has, ended + 1);
    this.#has[ended] = row + 1;
    return row;
  }

  /**
   * Drops the counts of a row that has just ended.
   *
   * @param {SeriesTable} table of the metric
   * @param {number} started its row, which has started again
   */
  replace(table, started) {
    const row = table.epoch === this.#epoch ? (this.#has[started] ?? 0) - 1 : -1;
    if (row < this.#settled) return;
    this.table.removeRow(row);
    this.#has[started] = 0;
  }

  /** From now on, none of the rows that are here can be replaced. */
  settle() {
    this.#settled = this.table.rowCount;
  }
}

/** @implements {TableFollower} */
class TableEndings {
  /** @type {Batch[]} that no capture has offered */
  open = [];
  /** @type {Batch[]} */
  closed = [];

  #onEnded;
  /** Whether the program has removed rows in the current step of its code, and may replace them. */
  #isReplacing = false;

  /**
   * @param {MetricView} view
   * @param {(endings: TableEndings, row: number, isRemoved: boolean) => void} onEnded
   */
  constructor(view, onEnded) {
    this.view = view;
    this.#onEnded = onEnded;
    const { table } = view;
    table.followers = [...table.followers, this];
  }

  end() {
    const { table } = this.view;
    table.followers = table.followers.filter(follower => follower !== this);
  }

  /** @param {number} row */
  rowStarted(row) {
    if (!this.#isReplacing) return;
    for (const batch of this.open) if (batch.isRemoved) batch.replace(this.view.table, row);
  }

  /**
   * @param {number} row
   * @param {boolean} isExpired
   */
  rowRemoved(row, isExpired) {
    this.#onEnded(this, row, !isExpired);
    // A row of totals starts again for the next thread that has removed it.
    if (isExpired || this.#isReplacing || this.view.table.isTotal) return;
    this.#isReplacing = true;
    void Promise.resolve().then(() => this.#settle());
  }

  #settle() {
    this.#isReplacing = false;
    this.open = this.open.filter(batch => batch.table.liveCount > 0);
    for (const batch of this.open) batch.settle();
  }
}

class EndedRows {
  /** @type {Map<SeriesTable, TableEndings>} */
  #followed = new Map();
  /** @type {Set<TableEndings>} tables with batches */
  #active = new Set();
  /** When the reader last sent a request. Before the first one, these rows were on no page. */
  #askedAt = -Infinity;
  #lookedAt = -Infinity;
  /** @type {Map<string, number>} by name of the metric: rows that were dropped unread since that request */
  #unread = new Map();
  /** The number of the last closed batch. */
  #last = 0;

  /**
   * From now on, keeps the counts of a metric's rows when they end.
   *
   * @param {MetricView} view replaces an earlier one of the same table
   */
  follow(view) {
    const { table, aggregator, type } = view;
    // Totals of other metrics do not outlive their source. Rows that another thread removes are offered by
    // that thread.
    const isKept = aggregator === 'sum' && isLasting(type) && view.ended === undefined;
    if (!isKept || Number.isNaN(table.resets)) return;
    const endings = this.#followed.get(table);
    if (endings !== undefined) endings.view = view;
    else this.#followed.set(table, new TableEndings(view, (...ended) => this.#add(...ended)));
  }

  /** @param {(table: SeriesTable) => boolean} isThere false for metrics that are gone: drops their batches */
  keep(isThere) {
    for (const [table, endings] of this.#followed) {
      if (isThere(table)) continue;
      endings.end();
      this.#followed.delete(table);
      this.#active.delete(endings);
    }
  }

  /**
   * @param {TableEndings} endings
   * @param {number} row
   * @param {boolean} isRemoved
   */
  #add(endings, row, isRemoved) {
    const now = idleClock.now();
    this.#dropUnread(now);
    const { open, view } = endings;
    if (open.findLast(batch => batch.isRemoved === isRemoved)?.add(view, row)) return;
    const batch = new Batch(view, isRemoved, now);
    batch.add(view, row);
    open.push(batch);
    this.#active.add(endings);
  }

  /** Closes all batches. */
  close() {
    this.#dropUnread(idleClock.now());
    const number = this.#last + 1;
    for (const { open, closed } of this.#active) {
      for (const batch of open.splice(0)) {
        if (batch.table.liveCount === 0) continue;
        this.#last = number;
        batch.view.ended = { batch: number, isRemoved: batch.isRemoved };
        closed.push(batch);
      }
    }
  }

  /**
   * @param {SeriesTable} table of a metric
   * @returns {MetricView[]} its closed batches
   */
  viewsOf(table) {
    return this.#followed.get(table)?.closed.map(({ view }) => view) ?? [];
  }

  /** Whether there are no batches. */
  get isEmpty() {
    return this.#active.size === 0;
  }

  /**
   * To be called when the reader has sent a request.
   *
   * @param {unknown} saved the number of the last batch that the reader has saved, from a message
   * @returns {Iterable<[name: string, rows: number]>} rows that were dropped unread since its previous
   *   request
   */
  asked(saved) {
    const unread = this.#askedAt === -Infinity ? [] : this.#unread;
    this.#unread = new Map();
    this.#askedAt = idleClock.now();
    if (typeof saved === 'number' && saved <= this.#last) {
      const isLater = (/** @type {Batch} */ { view }) => Number(view.ended?.batch) > saved;
      for (const endings of this.#active) this.#setClosed(endings, endings.closed.filter(isLater));
    }
    return unread;
  }

  /**
   * Drops batches that have waited too long for a request.
   *
   * @param {number} now
   */
  #dropUnread(now) {
    if (now - this.#lookedAt < LOOK_MILLISECONDS) return;
    this.#lookedAt = now;
    for (const endings of this.#active) {
      const { view, open, closed } = endings;
      const limit = Math.max(UNREAD_MILLISECONDS, view.table.maxIdleSeconds * 1000);
      if (now - this.#askedAt < limit) continue;
      const isKept = (/** @type {Batch} */ { since }) => now - since < limit;
      for (const { since, table } of [...open, ...closed]) {
        // Otherwise the last answer included it.
        const isUnread = now - since >= limit && since > this.#askedAt;
        const name = String(view.name);
        if (isUnread) this.#unread.set(name, (this.#unread.get(name) ?? 0) + table.rowCount);
      }
      endings.open = open.filter(isKept);
      this.#setClosed(endings, closed.filter(isKept));
    }
  }

  /**
   * @param {TableEndings} endings
   * @param {Batch[]} batches that are left
   */
  #setClosed(endings, batches) {
    endings.closed = batches;
    if (batches.length + endings.open.length === 0) this.#active.delete(endings);
  }
}

/**
 * Keeps the digest of an ended row. Nothing is recorded in it any more, but shared memory must be copied,
 * because it is used again.
 *
 * @param {Digest} digest
 * @returns {Digest}
 */
function keptDigest(digest) {
  const slices = digest.slices();
  if (slices.every(({ place }) => place === undefined)) return digest;
  const centroids = centroidsOf(slices);
  const copy = { isEmpty: centroids.length === 0, centroids: () => centroids };
  return /** @type {any} */ ({ version: 0, slices: () => [copy] });
}

module.exports = { EndedRows };
