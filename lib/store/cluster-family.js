'use strict';

// One metric family of the whole cluster. Its rows persist: a series is added once, and after that a scrape
// only moves numbers. Each scrape lists the sources that take part, one metric of one worker each, and merges
// them.

const { FamilyRows } = require('./family-rows');
const { FamilyTotals } = require('./family-totals');
const { FamilyQuantiles } = require('./family-quantiles');
const { exemplarReader } = require('./family-exemplars');
const { sourceAsJson } = require('./family-json');
const { UNMAPPED, NAME_LABEL } = require('./row-map');
const { RetiredTotals } = require('./retired-totals');
const { liveRows } = require('./source-rows');
const { CachedText } = require('./cached-text');
const { labelsText } = require('../exposition/label-text');
const { isValidMetricName } = require('../registry/names');
const { runThrough } = require('../event-loop/slices');
const { kindOf, widthOf, columnMap, unionOf } = require('../series/layouts');

const COMPACT_FROM_ROWS = 1024;
const ROWS_PER_STEP = 8192;
const MAX_GROWTH_OF_UNION = 4;
const SMALL_TABLE_CELLS = 2 ** 20;

/**
 * One metric of one worker in a scrape.
 *
 * @typedef {object} Source
 * @property {number} workerId
 * @property {import('../source/dictionary-decoder').Definition} definition
 * @property {RowMap} rows
 * @property {number} rowCount
 * @property {Int32Array | undefined} order the live rows; undefined if all are live and in order
 * @property {readonly Float64Array[]} pages the numbers by row; counts of buckets not cumulative
 * @property {number} pageShift each page has 2 to the power of this rows
 * @property {import('../source/extras').RowExtras} extras
 */

/** @typedef {[name: string, value: string | undefined]} Label undefined: the label set does not have it */

/** @typedef {import('./row-map').RowMap} RowMap */
/** @typedef {import('./family-quantiles').SourceDigest} SourceDigest */

class ClusterFamily {
  /** @type {Source[]} of the current scrape */
  sources = [];
  #scrape = 0;
  #mergedAt = 0;
  #quantiles = new FamilyQuantiles();
  #totals = new FamilyTotals(this.#quantiles);
  #text = new CachedText();
  #onLeftOut;

  /**
   * @param {import('../source/dictionary-decoder').Definition} definition
   * @param {(reason: string) => void} onLeftOut called for each source of which label sets are left out
   */
  constructor(definition, onLeftOut) {
    this.definition = definition;
    this.#onLeftOut = onLeftOut;
    this.rows = new FamilyRows();
    /** That of the last merge: its marks are those of all sources. */
    this.layout = definition.layout;
    this.retired = new RetiredTotals();
  }

  get width() {
    return widthOf(this.layout);
  }

  /** Whether anything is left to show. */
  get isEmpty() {
    return this.sources.length === 0 && this.retired.isEmpty;
  }

  /** @param {number} scrape */
  begin(scrape) {
    this.#scrape = scrape;
    this.sources = [];
    this.#quantiles.begin();
  }

  /** @param {Source} source */
  addSource(source) {
    // The worker with the lowest id comes first and defines the family.
    if (this.sources.length === 0) this.definition = source.definition;
    this.sources.push(source);
  }

  /**
   * Merges the sources of a scrape.
   *
   * @param {string} rule name of a built-in aggregator
   * @param {number} now milliseconds, by the store's clock
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *merge(rule, now) {
    for (const source of this.sources) yield* this.#translate(source);
    this.#setMarks();
    this.#mergedAt = this.#scrape;
    const totals = this.#totals;
    totals.begin(this.#scrape, this.rows.count, this.layout);
    for (const source of this.sources) {
      yield* rule === 'sum' ? totals.addSum(source) : totals.addByRule(source, rule);
    }
    if (rule !== 'sum') {
      totals.finishRule(rule);
    } else if (!this.retired.isEmpty) {
      totals.addRetired(this.retired, now);
      yield* totals.round();
    } else if (this.sources.length > 1) {
      yield* totals.round();
    }
    if (kindOf(this.layout).isComputed) {
      yield* this.#quantiles.merge(totals.order, this.layout.marks, rule);
    }
  }

  /**
   * Adds a dead worker's last numbers to the retired totals.
   *
   * @param {Source} source
   * @param {number} now
   */
  retire(source, now) {
    const {
      pages: [columns],
      rows,
      definition,
    } = source;
    const { retired } = this;
    if (this.retired.isEmpty && this.sources.length === 0) this.definition = definition;
    retired.addColumns(definition.layout);
    const columnOf = columnMap(definition.layout, retired.layout.marks);
    const width = columnOf.length;
    rows.bind(this.rows);
    runThrough(this.#translate(source));
    for (const row of liveRows(source)) {
      const familyRow = rows.rows[row];
      for (let column = 0; column < width; column++) {
        retired.add(familyRow, columnOf[column], columns[row * width + column]);
      }
      const digest = definition.windowed ? undefined : source.extras.digestOf?.(row);
      if (digest !== undefined && 'centroids' in digest) retired.addDigest(familyRow, digest.centroids);
      retired.touch(familyRow, now);
    }
  }

  /**
   * Drops the totals of dead workers for label sets that have these labels.
   *
   * @param {Label[]} labels
   * @returns {number} how many label sets there were
   */
  removeRetired(labels) {
    const rows = [...this.retired.rows()].filter(row =>
      labels.every(([name, value]) => this.rows.labelOf(row, name) === value),
    );
    for (const row of rows) this.retired.remove(row);
    return rows.length;
  }

  /** Drops the rows that were not in the last scrape, once they are more than half. */
  compactIfSparse() {
    if (this.rows.count < COMPACT_FROM_ROWS) return;
    const isMerged = this.#mergedAt === this.#scrape;
    const { order } = this.#totals;
    if (isMerged && order.length * 2 >= this.rows.count) return;
    const rows = new Set(isMerged ? order : this.#translatedRows());
    for (const row of this.retired.rows()) rows.add(row);
    if (rows.size * 2 < this.rows.count) this.#compact([...rows]);
  }

  /**
   * The family as input of the text format.
   *
   * @returns {import('../exposition/text-format').Family}
   */
  view() {
    const { name, help, type } = this.definition;
    const { width, layout } = this;
    const { values } = this.#totals;
    const { marker, isComputed, hasOwnNames } = kindOf(layout);
    const named = hasOwnNames && this.rows.hasLabel(NAME_LABEL);
    const hidesMarker = marker !== undefined && this.rows.hasLabel(marker);
    /** @type {import('../exposition/text-format').Family['labels']} */
    const labels = (row, marked) => this.rows.pairsOf(row, marked ? marker : undefined);
    return {
      name,
      help,
      type,
      layout,
      rows: () => this.#totals.order,
      pageOf: () => values,
      offsetOf: row => row * width,
      labels,
      labelText: (row, marked) =>
        marked && hidesMarker ? labelsText(labels(row, true)) : this.rows.textOf(row),
      quantileValues: isComputed ? row => this.#quantiles.valuesOf(row) : undefined,
      sampleName: named ? row => this.#nameOf(row) : undefined,
      exemplarAt: exemplarReader(this.sources, layout.marks, width),
      cachedText: this.#text,
      labelVersion: `${this.rows.generation} ${hidesMarker}`,
    };
  }

  /** @param {number} row of a custom metric object */
  #nameOf(row) {
    const own = this.rows.labelOf(row, NAME_LABEL);
    // An application may use the label itself.
    return own !== undefined && isValidMetricName(own) ? own : undefined;
  }

  /**
   * One source as prom-client's JSON, for a custom aggregator.
   *
   * @param {Source} source
   */
  toJson(source) {
    runThrough(this.#translate(source));
    return sourceAsJson(source, liveRows(source), row => this.rows.labelsOf(source.rows.rows[row]));
  }

  /** The rows in use of a family with a custom aggregator. */
  *#translatedRows() {
    for (const source of this.sources) {
      for (const row of liveRows(source)) if (source.rows.rows[row] !== UNMAPPED) yield source.rows.rows[row];
    }
  }

  /**
   * Looks up the family's row for each row of a source that has none yet. Label sets that are too long have
   * none: from now on the source is without them.
   *
   * @param {Source} source
   */
  *#translate(source) {
    const { rows, order, rowCount } = source;
    rows.bind(this.rows);
    const count = order === undefined ? rowCount : order.length;
    let tooLong = 0;
    for (let i = 0; i < count; i++) {
      const row = order === undefined ? i : order[i];
      if (rows.rows[row] === UNMAPPED) rows.translate(this.rows, row);
      if (rows.rows[row] === UNMAPPED) tooLong++;
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
    if (tooLong === 0) return;
    source.order = Int32Array.from(liveRows(source)).filter(row => rows.rows[row] !== UNMAPPED);
    this.#onLeftOut(`the labels of ${tooLong} series are too long`);
  }

  /** The marks of this scrape: the union of all sources', sorted if they differ. */
  #setMarks() {
    const lists = this.sources.map(({ definition }) => definition.layout.marks);
    if (!this.retired.isEmpty) lists.push(this.retired.layout.marks);
    const marks = unionOf(lists);
    this.layout = { kind: this.layout.kind, marks };
    const { length } = marks;
    if (lists.some(list => list.length !== length)) this.#checkSize();
  }

  /**
   * The page has a sample for each row and bound (or quantile): bounds that differ from worker to worker
   * could make it much larger than all that was sent.
   *
   * @throws {RangeError}
   */
  #checkSize() {
    const sent = this.sources.reduce(
      (sum, { rowCount, definition }) => sum + rowCount * definition.layout.marks.length,
      this.retired.size,
    );
    const cells = this.rows.count * this.layout.marks.length;
    if (cells > Math.max(sent * MAX_GROWTH_OF_UNION, SMALL_TABLE_CELLS)) {
      throw new RangeError(`the bounds of its workers differ too much: ${cells} cells`);
    }
  }

  /** @param {number[]} rows those to keep */
  #compact(rows) {
    this.rows.compact(rows);
    this.retired.renumber(rows);
    this.#quantiles.forget();
    this.#text = new CachedText();
    this.#totals.clear();
  }
}

module.exports = { ClusterFamily };
