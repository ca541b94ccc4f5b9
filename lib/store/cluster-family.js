'use strict';

// One metric family of the whole cluster. Its rows persist: a series is added once, and after that a scrape
// only adds up numbers. Each scrape lists the sources to merge; a source is one metric of one worker.

const { FamilyRows } = require('./family-rows');
const { FamilyTotals } = require('./family-totals');
const { FamilyQuantiles } = require('./family-quantiles');
const { exemplarReader, nativeExemplarReader } = require('./family-exemplars');
const { oldestStarts } = require('./family-starts');
const { settle } = require('./family-retired');
const { sourceAsJson } = require('./family-json');
const { UNMAPPED, NAME_LABEL } = require('./row-map');
const { liveRows } = require('./source-rows');
const { CachedText } = require('./cached-text');
const { labelsText } = require('../exposition/label-text');
const { isValidMetricName } = require('../registry/names');
const { runThrough } = require('../event-loop/slices');
const { kindOf, widthOf, unionOf } = require('../series/layouts');
const { UNKNOWN } = require('../series/row-starts');

const COMPACT_FROM_ROWS = 1024;
const ROWS_PER_STEP = 8192;
const MAX_GROWTH_OF_UNION = 4;
const SMALL_TABLE_CELLS = 2 ** 20;

/**
 * One metric of one worker in a scrape.
 *
 * @typedef {object} Source
 * @property {number} workerId
 * @property {import('../source/log-decoder').Definition} definition
 * @property {RowMap} rows
 * @property {number} rowCount
 * @property {Int32Array | undefined} order the live rows; undefined if all are live and in order
 * @property {readonly Float64Array[]} pages the numbers by row; counts of buckets not cumulative
 * @property {number} pageShift each page has 2 to the power of this rows
 * @property {import('../series/row-starts').Starts | undefined} starts undefined if its numbers have no
 *   start, or another source has the start
 * @property {import('../source/extras').RowExtras} extras
 * @property {import('../source/extras').Ended} [ended] if these rows have ended while their process lives
 */

/** @typedef {[name: string, value: string | undefined]} Label undefined if the label set lacks it */

/** @typedef {import('./row-map').RowMap} RowMap */
/** @typedef {import('./family-quantiles').SourceDigest} SourceDigest */

/** Loaded on first use: programs without native histograms do not need this file. */
const bucketsClass = () => require('./family-buckets').FamilyBuckets;

class ClusterFamily {
  /** @type {Source[]} of live workers in the current scrape */
  sources = [];
  /** Whether there are retired totals in the current scrape. */
  #hasRetired = false;
  /** @type {Source[]} rows that have ended in a live worker, and are not in the retired totals yet */
  #endings = [];
  /** @type {Source[]} of retired totals in the last merge */
  #ended = [];
  /** @type {Float64Array | undefined} by row, computed at the first request */
  #starts = undefined;
  #scrape = 0;
  #mergedAt = 0;
  #quantiles = new FamilyQuantiles();
  #buckets;
  #totals;
  #text = new CachedText();
  #onLeftOut;

  /**
   * @param {import('../source/log-decoder').Definition} definition
   * @param {(reason: string) => void} onLeftOut called for each source with label sets that are left out
   */
  constructor(definition, onLeftOut) {
    this.definition = definition;
    this.#onLeftOut = onLeftOut;
    this.rows = new FamilyRows();
    /** The layout of the last merge, with the marks of all sources. */
    this.layout = definition.layout;
    this.#buckets = kindOf(this.layout).hasBuckets ? new (bucketsClass())() : undefined;
    this.#totals = new FamilyTotals(this.#quantiles, this.#buckets);
  }

  get width() {
    return widthOf(this.layout);
  }

  /** Whether anything is left to show. */
  get isEmpty() {
    return this.sources.length === 0 && !this.#hasRetired;
  }

  /** @param {number} scrape */
  begin(scrape) {
    this.#scrape = scrape;
    this.sources = [];
    this.#hasRetired = false;
    this.#endings = [];
    this.#quantiles.begin();
    this.#buckets?.begin();
  }

  /** @param {Source} source */
  addSource(source) {
    // The worker with the lowest id comes first and defines the family.
    if (this.sources.length === 0) this.definition = source.definition;
    this.sources.push(source);
  }

  /** To be called if the retired totals include this family. */
  addRetired() {
    this.#hasRetired = true;
  }

  /** @param {Source} ending rows that have ended in a live worker */
  addEnding(ending) {
    this.#endings.push(ending);
  }

  /**
   * Merges the sources of a scrape.
   *
   * @param {string} rule name of a built-in aggregator
   * @param {import('./family-retired').Retiring} [retiring] if there may be ended rows or dead workers
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *merge(rule, retiring) {
    for (const source of this.sources) yield* this.translate(source);
    const hasEnded = rule === 'sum' && (this.#hasRetired || this.#endings.length > 0);
    const ended = hasEnded && retiring ? yield* settle(this, this.#endings, retiring) : [];
    this.#ended = ended;
    this.#starts = undefined;
    for (const source of ended) yield* this.translate(source);
    this.#setMarks(ended);
    this.#mergedAt = this.#scrape;
    const totals = this.#totals;
    totals.begin(this.#scrape, this.rows.count, this.layout);
    for (const source of this.sources) {
      yield* rule === 'sum' ? totals.addSum(source) : totals.addByRule(source, rule);
    }
    for (const source of ended) yield* totals.addSum(source);
    if (rule !== 'sum') totals.finishRule(rule);
    else if (this.sources.length + ended.length > 1) yield* totals.round();
    if (kindOf(this.layout).isComputed) {
      yield* this.#quantiles.merge(totals.order, this.layout.marks, rule);
    }
    if (this.#buckets !== undefined) yield* this.#buckets.merge(totals.order, rule);
  }

  /** If more than half of the rows were not in the last scrape, drops these. */
  compactIfSparse() {
    if (this.rows.count < COMPACT_FROM_ROWS) return;
    const isMerged = this.#mergedAt === this.#scrape;
    const { order } = this.#totals;
    if (isMerged && order.length * 2 >= this.rows.count) return;
    const rows = new Set(isMerged ? order : this.#translatedRows());
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
      bucketsAt: this.#buckets?.shown,
      nativeExemplarsAt: this.#buckets && nativeExemplarReader(this.sources),
      starts: this,
      cachedText: this.#text,
      labelVersion: `${this.rows.generation} ${hidesMarker}`,
    };
  }

  /**
   * @param {number} row
   * @returns {number} when the oldest part of its sum started to count, seconds since 1970; 0 if that is
   *   unknown
   */
  startAt(row) {
    this.#starts ??= oldestStarts([...this.sources, ...this.#ended], this.rows.count);
    return this.#starts[row] ?? UNKNOWN;
  }

  /**
   * @param {number} row of a native histogram
   * @returns {import('../series/merged-buckets').Buckets | undefined} as merged last
   */
  bucketsOf(row) {
    return this.#totals.has(row) ? this.#buckets?.of(row) : undefined;
  }

  /** Whether the last merge has left no rows. */
  get hasNoRows() {
    return this.#totals.order.length === 0;
  }

  /** @param {number} row of a custom metric object */
  #nameOf(row) {
    const own = this.rows.labelOf(row, NAME_LABEL);
    // An application may use this label name for other values.
    return own !== undefined && isValidMetricName(own) ? own : undefined;
  }

  /**
   * One source as prom-client's JSON, for a custom aggregator.
   *
   * @param {Source} source
   */
  toJson(source) {
    runThrough(this.translate(source));
    return sourceAsJson(source, [...liveRows(source)], row => this.rows.labelsOf(source.rows.rows[row]));
  }

  /** The rows in use of a family with a custom aggregator. */
  *#translatedRows() {
    for (const source of this.sources) {
      for (const row of liveRows(source)) if (source.rows.rows[row] !== UNMAPPED) yield source.rows.rows[row];
    }
  }

  /**
   * Looks up the family's row for each row of a source that was not translated yet. Label sets that are too
   * long get no row and are dropped from the source.
   *
   * @param {Source} source
   */
  *translate(source) {
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

  /**
   * The marks of this scrape: the union of all sources', sorted if they differ.
   *
   * @param {Source[]} ended
   */
  #setMarks(ended) {
    const sources = [...this.sources, ...ended];
    const lists = sources.map(({ definition }) => definition.layout.marks);
    const marks = unionOf(lists);
    this.layout = { kind: this.layout.kind, marks };
    const { length } = marks;
    if (lists.some(list => list.length !== length)) this.#checkSize(sources);
  }

  /**
   * Checks the size of the page, which has a sample for each row and bound (or quantile). Bounds that differ
   * from worker to worker could make it much larger than all snapshots together.
   *
   * @param {Source[]} sources
   * @throws {RangeError}
   */
  #checkSize(sources) {
    const sent = sources.reduce(
      (sum, { rowCount, definition }) => sum + rowCount * definition.layout.marks.length,
      0,
    );
    const cells = this.rows.count * this.layout.marks.length;
    if (cells > Math.max(sent * MAX_GROWTH_OF_UNION, SMALL_TABLE_CELLS)) {
      throw new RangeError(`the bounds of its workers differ too much: ${cells} cells`);
    }
  }

  /** @param {number[]} rows those to keep */
  #compact(rows) {
    this.rows.compact(rows);
    this.#quantiles.forget();
    this.#buckets?.compact(rows);
    this.#text = new CachedText();
    this.#totals.clear();
  }
}

module.exports = { ClusterFamily };
