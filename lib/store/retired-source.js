'use strict';

// The retired totals: sums of counters, histograms and summaries with the aggregator `sum`. A row has what
// workers and threads had counted that have ended, and rows that have ended while their process lives. If it
// has only the latter, it is folded: it stays only as long as another source has its label set. The retired
// totals are themselves a source, which is merged in each scrape and written as an ordinary snapshot.

const { RetiredTotals, FOLDED } = require('./retired-totals');
const { definitionOf } = require('./table-source');
const { stretchesOf } = require('./source-rows');
const { VIEW } = require('../registry/metric-view');
const { isLasting, widthOf } = require('../series/layouts');
const { startOf } = require('../series/row-starts');
const { runThrough } = require('../event-loop/slices');

// A row of a table has an integer for each label name. If there are many names and each row lacks most of
// them, each set of names gets its own table.
const MANY_LABEL_NAMES = 64;

// All workers need the same few tables, unless a program generates bounds or label names.
const MAX_TABLES_OF_METRIC = 1000;

const ROWS_PER_STEP = 64;

/** @typedef {import('./cluster-family').ClusterFamily} ClusterFamily */
/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./cluster-family').Label} Label */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../source/log-decoder').Definition} Definition */

class RetiredSource {
  /** @type {Map<string, Map<string, RetiredTotals>>} by metric, then by the rest of the definition */
  #metrics = new Map();
  /** Whether the totals have changed so that they must be saved before the next page. */
  isUnsaved = false;

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
   * @param {number} now
   */
  restore(source, now) {
    const { definition, ended, rows } = source;
    if (ended === undefined) runThrough(this.add(source, now));
    else this.totalsOf(definition, rows.labelNames).restoreSeen(source, now);
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
   * Adds all rows of a source that has ended, or rows that have ended while their process lives. If the
   * program has removed these, the totals of dead sources for their label sets are folded, too.
   *
   * @param {Source} source
   * @param {number} seen see RetiredTotals.add()
   * @param {ClusterFamily} [family] to which its rows are translated if they have buckets
   * @returns {Generator<void>} yields where a slice may end
   * @throws {RangeError} if its metric has too many tables
   */
  *add(source, seen, family) {
    const { definition, order, rows, starts, ended } = source;
    const { digestOf, buckets } = source.extras;
    const width = widthOf(definition.layout);
    const { labelNames } = rows;
    const isOne = labelNames.length <= MANY_LABEL_NAMES;
    const folded = ended?.isRemoved ? this.totalsIn(definition) : [];
    const common = isOne ? this.totalsOf(definition, labelNames) : undefined;
    for (const { columns, first, from, to } of stretchesOf(source)) {
      for (let i = from; i < to; i++) {
        const row = order[i];
        const digest = digestOf?.(row);
        const centroids = digest !== undefined && 'centroids' in digest ? digest.centroids : undefined;
        const start = starts && startOf(starts, row);
        // Other sources may have lowered the resolution, which must stay low when such a source is gone.
        const shown = buckets && family?.bucketsOf(rows.rows[row]);
        const extras = { start, centroids, buckets: buckets?.read(row), shown };
        const labels = rows.labelsOf(row);
        for (const { table, lastSeen } of folded) {
          const own = table.find(labels);
          if (own !== -1) lastSeen[own] = FOLDED;
        }
        const totals = common ?? this.totalsOf(definition, Object.keys(labels).sort());
        totals.add(labels, columns, (row - first) * width, extras, seen);
        if ((i + 1) % ROWS_PER_STEP === 0) yield;
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
      totals = new RetiredTotals(definition, labelNames, () => (this.isUnsaved = true));
      tables.set(key, totals);
    }
    return totals;
  }

  /**
   * @param {MetricView} view of a table
   * @param {Record<string, string>} defaults its registry's default labels
   * @returns {RetiredTotals} to which its rows are to be added
   */
  totalsFor(view, defaults) {
    const { labelNames } = view.table;
    return this.totalsOf(definitionOf(view), [...new Set([...labelNames, ...Object.keys(defaults)])]);
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
      yield* totals.expire(oldest);
      yield* totals.table.compactionSteps();
    }
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
