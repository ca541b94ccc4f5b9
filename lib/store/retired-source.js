'use strict';

// What ended workers or threads had counted: counters, histograms and summaries with the aggregator `sum`,
// added up. It is a source itself: it is merged each time, and is written as an ordinary snapshot.

const { RetiredTotals } = require('./retired-totals');
const { stretchesOf } = require('./source-rows');
const { VIEW } = require('../registry/metric-view');
const { isLasting, widthOf } = require('../series/layouts');
const { startOf } = require('../series/row-starts');

// A row of a table has an integer for each label name. If rows have many names, most of which each of them
// lacks, there is a table for each set of names.
const MANY_LABEL_NAMES = 64;

// Workers have the same few, unless something makes up bounds or label names.
const MAX_TABLES_OF_METRIC = 1000;

/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./cluster-family').Label} Label */
/** @typedef {import('../source/log-decoder').Definition} Definition */

class RetiredSource {
  /** @type {Map<string, Map<string, RetiredTotals>>} by name of the metric, then by all that it depends on */
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
    const views = this.totals.flatMap(totals => totals.views);
    return views.map(view => ({ name: view.name, [VIEW]: () => view }));
  }

  /**
   * Adds all rows of a source that has ended.
   *
   * @param {Source} source
   * @param {(row: number) => import('../series/merged-buckets').Buckets | undefined} [shownOf] buckets of a
   *   row of its family on the last page
   * @throws {RangeError} if its metric has too many tables
   */
  add(source, shownOf = () => undefined) {
    const { definition, order, rows, starts } = source;
    const { digestOf, buckets } = source.extras;
    const width = widthOf(definition.layout);
    const { labelNames } = rows;
    const common = labelNames.length > MANY_LABEL_NAMES ? undefined : this.totalsOf(definition, labelNames);
    const now = this.#now();
    for (const { columns, first, from, to } of stretchesOf(source)) {
      for (let i = from; i < to; i++) {
        const row = order === undefined ? i : order[i];
        const labels = rows.labelsOf(row);
        const totals = common ?? this.totalsOf(definition, Object.keys(labels).sort());
        const digest = digestOf?.(row);
        const centroids = digest !== undefined && 'centroids' in digest ? digest.centroids : undefined;
        const start = starts && startOf(starts, row);
        const shown = buckets && shownOf(rows.rows[row]);
        const extras = { start, centroids, buckets: buckets?.read(row), shown };
        totals.add(labels, columns, (row - first) * width, extras, now);
      }
    }
    this.#dropEmpty();
  }

  /**
   * @param {Definition} definition
   * @param {readonly string[]} labelNames
   * @returns {RetiredTotals} those of a metric, new ones if need be
   * @throws {RangeError} if the metric has too many tables
   */
  totalsOf(definition, labelNames) {
    const { name, type, layout, windowed } = definition;
    let tables = this.#metrics.get(name);
    if (tables === undefined) this.#metrics.set(name, (tables = new Map()));
    const key = [type, windowed, layout.kind, layout.marks.join(), ...labelNames].join(' ');
    let totals = tables.get(key);
    if (totals === undefined) {
      if (tables.size === MAX_TABLES_OF_METRIC)
        throw new RangeError('its bounds or label names differ too much');
      tables.set(key, (totals = new RetiredTotals(definition, labelNames)));
    }
    return totals;
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
   * Drops the label sets that no source has had since a given time.
   *
   * @param {number} oldest by the same clock
   * @returns {Generator<void>} yields where a slice may end
   */
  *expire(oldest) {
    for (const totals of this.totals) yield* totals.expire(oldest);
    this.#dropEmpty();
  }

  #dropEmpty() {
    for (const [name, tables] of this.#metrics) {
      for (const [key, totals] of tables) if (totals.isEmpty) tables.delete(key);
      if (tables.size === 0) this.#metrics.delete(name);
    }
  }
}

module.exports = { RetiredSource };
