'use strict';

// The retired totals: sums of counters, histograms and summaries with the aggregator `sum`. One set of tables
// is for workers and threads that have ended. Another one is for folded rows, which have ended while their
// process lives, and stay only as long as another source has their label set. The retired totals are
// themselves a source, which is merged in each scrape and written as an ordinary snapshot.

const { RetiredTotals, SEEN } = require('./retired-totals');
const { stretchesOf, liveRows } = require('./source-rows');
const { VIEW } = require('../registry/metric-view');
const { isLasting, widthOf } = require('../series/layouts');
const { startOf } = require('../series/row-starts');

// A row of a table has an integer for each label name. If there are many names and each row lacks most of
// them, each set of names gets its own table.
const MANY_LABEL_NAMES = 64;

// All workers need the same few tables, unless a program generates bounds or label names.
const MAX_TABLES_OF_METRIC = 1000;

/** @typedef {import('./cluster-family').ClusterFamily} ClusterFamily */
/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./cluster-family').Label} Label */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../source/log-decoder').Definition} Definition */

class RetiredSource {
  /** @type {Map<string, Map<string, RetiredTotals>>} by metric, then by the rest of the definition */
  #metrics = new Map();
  #now;

  /** @param {() => number} now milliseconds, by a clock that never jumps */
  constructor(now) {
    this.#now = now;
  }

  /**
   * @param {Pick<Definition, 'type' | 'aggregator'>} definition
   * @returns {boolean} whether totals of the metric outlive their process
   */
  static keeps({ type, aggregator }) {
    return aggregator === 'sum' && isLasting(type);
  }

  /** @returns {boolean} whether there is nothing to show */
  get isEmpty() {
    return this.#metrics.size === 0;
  }

  /** @returns {RetiredTotals[]} */
  get totals() {
    return Array.from(this.#metrics.values(), tables => [...tables.values()]).flat();
  }

  /** @returns {any[]} the totals as metrics of a registry */
  get metrics() {
    return metricsOf(this.totals.flatMap(totals => totals.views));
  }

  /** @returns {any[]} the same for a snapshot, with when rows were seen if they leave by that */
  get savedMetrics() {
    return metricsOf(this.totals.flatMap(totals => totals.savedViews));
  }

  /**
   * Adds what a snapshot has.
   *
   * @param {Source} source
   */
  restore(source) {
    const { definition, ended, rows } = source;
    if (ended?.batch !== SEEN.batch) this.add(source, undefined, ended !== undefined);
    else this.totalsOf(definition, rows.labelNames).restoreSeen(source, this.#now());
  }

  /** How many rows there are of dead sources, and how many folded ones, as text. */
  get rowCounts() {
    const counts = [0, 0];
    for (const { isFolded, table } of this.totals) counts[Number(isFolded)] += table.liveCount;
    return counts.join();
  }

  /**
   * @param {Pick<Definition, 'name' | 'type' | 'layout'>} definition
   * @returns {RetiredTotals[]} the totals of its family
   */
  totalsIn({ name, type, layout }) {
    return [...(this.#metrics.get(name)?.values() ?? [])].filter(
      ({ definition }) => definition.type === type && definition.layout.kind === layout.kind,
    );
  }

  /**
   * Adds all rows of a source that has ended.
   *
   * @param {Source} source
   * @param {ClusterFamily} [family] to which its rows are translated
   * @param {boolean} [isFolded] whether its rows stay only as long as others have their label sets
   * @throws {RangeError} if its metric has too many tables
   */
  add(source, family, isFolded = false) {
    const { definition, order, rows, starts } = source;
    const { digestOf, buckets } = source.extras;
    const width = widthOf(definition.layout);
    const { labelNames } = rows;
    const isOne = labelNames.length <= MANY_LABEL_NAMES;
    const common = isOne ? this.totalsOf(definition, labelNames, isFolded) : undefined;
    const now = this.#now();
    for (const { columns, first, from, to } of stretchesOf(source)) {
      for (let i = from; i < to; i++) {
        const row = order === undefined ? i : order[i];
        const digest = digestOf?.(row);
        const centroids = digest !== undefined && 'centroids' in digest ? digest.centroids : undefined;
        const start = starts && startOf(starts, row);
        // Other sources may have lowered the resolution, which must stay low when such a source is gone.
        const shown = buckets && family?.bucketsOf(rows.rows[row]);
        const extras = { start, centroids, buckets: buckets?.read(row), shown };
        const at = (row - first) * width;
        if (common !== undefined && family !== undefined) {
          common.addFrom(family, source, row, columns, at, extras, now);
          continue;
        }
        const labels = rows.labelsOf(row);
        const totals = common ?? this.totalsOf(definition, Object.keys(labels).sort(), isFolded);
        totals.add(labels, columns, at, extras, now);
      }
    }
    this.#dropEmpty();
  }

  /**
   * Adds rows that have ended while their process lives. If the program has removed them, the totals of dead
   * sources for their label sets are folded, too.
   *
   * @param {Source} source
   * @param {ClusterFamily} family to which its rows are translated
   */
  fold(source, family) {
    for (const totals of source.ended?.isRemoved ? this.totalsIn(source.definition) : []) {
      for (const row of totals.isFolded ? [] : liveRows(source)) {
        const dead = totals.rowIn(family, source.rows.rows[row]);
        if (dead !== -1) this.foldRow(totals, dead);
      }
    }
    this.add(source, family, true);
  }

  /**
   * @param {RetiredTotals} totals of dead sources
   * @param {number} row
   */
  foldRow(totals, row) {
    const { definition } = totals;
    this.totalsOf(definition, definition.labelNames, true).take(totals, row, this.#now());
  }

  /**
   * @param {Definition} definition
   * @param {readonly string[]} labelNames
   * @param {boolean} [isFolded]
   * @returns {RetiredTotals} those of a metric, new ones if need be
   * @throws {RangeError} if the metric has too many tables
   */
  totalsOf(definition, labelNames, isFolded = false) {
    const { name, type, layout, windowed } = definition;
    let tables = this.#metrics.get(name);
    if (tables === undefined) this.#metrics.set(name, (tables = new Map()));
    const key = [isFolded, type, windowed, layout.kind, layout.marks.join(), ...labelNames].join(' ');
    let totals = tables.get(key);
    if (totals === undefined) {
      if (tables.size === MAX_TABLES_OF_METRIC)
        throw new RangeError('its bounds or label names differ too much');
      tables.set(key, (totals = new RetiredTotals(definition, labelNames, isFolded)));
    }
    return totals;
  }

  /**
   * @param {MetricView} view of a table
   * @param {Record<string, string>} defaults its registry's default labels
   * @returns {RetiredTotals} to which its rows are to be added
   */
  totalsFor({ name, help, type, aggregator, layout, windowed = false, table }, defaults) {
    const { maxIdleSeconds } = table;
    const labelNames = [...new Set([...table.labelNames, ...Object.keys(defaults)])];
    return this.totalsOf(
      { name, help, type, aggregator, layout, windowed, maxIdleSeconds, labelNames },
      labelNames,
    );
  }

  /**
   * Drops the totals of label sets that have these labels.
   *
   * @param {Label[]} labels
   * @param {string} [metric] its name, default all
   * @returns {number} how many label sets there were
   */
  remove(labels, metric) {
    /** @type {Set<string>} */
    const removed = new Set();
    for (const totals of this.totals) {
      const { name, type } = totals.definition;
      if (metric !== undefined && name !== metric) continue;
      for (const row of [...totals.table.liveRows()]) {
        const own = new Map(Object.entries(totals.table.labelsOf(row)));
        if (!labels.every(([label, value]) => own.get(label) === value)) continue;
        totals.remove(row);
        removed.add(JSON.stringify([name, type, ...[...own].sort()]));
      }
    }
    this.#dropEmpty();
    return removed.size;
  }

  /**
   * Drops the label sets that no source has had since a given time, and releases the memory of removed rows.
   *
   * @param {number} oldest by the same clock
   * @returns {Generator<void>} yields where a slice may end
   */
  *expire(oldest) {
    for (const totals of this.totals) {
      if (!totals.isFolded) yield* totals.expire(oldest);
      yield* totals.table.compactionSteps();
    }
    this.#dropEmpty();
  }

  /** @param {RetiredTotals} totals that are not needed any more */
  drop(totals) {
    const tables = this.#metrics.get(totals.definition.name) ?? new Map();
    for (const [key, each] of tables) if (each === totals) tables.delete(key);
    this.#dropEmpty();
  }

  #dropEmpty() {
    for (const [name, tables] of this.#metrics) {
      for (const [key, totals] of tables) if (totals.isEmpty) tables.delete(key);
      if (tables.size === 0) this.#metrics.delete(name);
    }
  }
}

/** @param {MetricView[]} views */
function metricsOf(views) {
  return views.map(view => ({ name: view.name, [VIEW]: () => view }));
}

module.exports = { RetiredSource };
