'use strict';

// One metric family of the whole cluster. Its rows persist: a series is added once, and after that a scrape
// only adds up numbers. Each scrape lists the sources to merge; a source is one metric of one worker.

const { FamilyRows } = require('./family-rows');
const { FamilyTotals } = require('./family-totals');
const { FamilyExtras } = require('./family-extras');
const { mergedQuantiles } = require('./family-quantiles');
const { exemplarReaders } = require('./family-exemplars');
const { settle } = require('./family-retired');
const { UNMAPPED, NAME_LABEL } = require('./row-map');
const { CachedText } = require('./cached-text');
const { labelsText } = require('../exposition/label-text');
const { isValidMetricName } = require('../registry/names');
const { kindOf, widthOf, unionOf } = require('../series/layouts');
const { UNKNOWN, startOf } = require('../series/row-starts');

const SPARSE_FROM_ROWS = 1024;
const ROWS_PER_STEP = 8192;
const MAX_GROWTH_OF_UNION = 4;
const SMALL_TABLE_CELLS = 2 ** 20;

/**
 * Only a hostile worker counts more. A page has twice the difference of two counts, which would be inexact:
 * servers refuse a page whose counts differ.
 */
const MOST_OBSERVATIONS = 2 ** 52;

/**
 * One metric of one worker in a scrape.
 *
 * @typedef {object} Source
 * @property {number} workerId
 * @property {import('../source/log-decoder').Definition} definition
 * @property {RowMap} rows
 * @property {number} rowCount
 * @property {Int32Array} order the live rows
 * @property {readonly Float64Array[]} pages the numbers by row; counts of buckets not cumulative
 * @property {number} pageShift each page has 2 to the power of this rows
 * @property {import('../series/row-starts').Starts | undefined} starts undefined if its numbers have no
 *   start, or another source has the start
 * @property {import('../source/extras').RowExtras} extras
 * @property {import('../source/extras').Ended} [ended] if these rows have ended while their process lives
 */

/** @typedef {[name: string, value: string | undefined]} Label undefined if the label set lacks it */

/** @typedef {import('./row-map').RowMap} RowMap */

/** Programs without native histograms load nothing of them. */
const natives = () => require('../series/merged-buckets');

class ClusterFamily {
  /** @type {Source[]} of live workers in the current scrape */
  sources = [];
  /** @type {import('./retired-totals').RetiredTotals[]} of the current scrape */
  retired = [];
  /** @type {Source[]} of the last merge, with those of retired totals */
  #merged = [];
  /** @type {Float64Array | undefined} by row, computed at the first request */
  #starts = undefined;
  #scrape = 0;
  /** @type {FamilyExtras<any, any>} digests of summaries, or sparse buckets */
  #extras = new FamilyExtras();
  #totals = new FamilyTotals(this.#extras);
  #text = new CachedText();

  /** @param {import('../source/log-decoder').Definition} definition */
  constructor(definition) {
    this.definition = definition;
    this.rows = new FamilyRows();
    /** The layout of the last merge, with the marks of all sources. */
    this.layout = definition.layout;
  }

  get width() {
    return widthOf(this.layout);
  }

  /** Whether anything is left to show. */
  get isEmpty() {
    return this.sources.length === 0 && this.retired.length === 0;
  }

  /** Whether it is large, and more than half of its rows were not in the last merge. */
  get isSparse() {
    return this.rows.count >= SPARSE_FROM_ROWS && this.#totals.order.length * 2 < this.rows.count;
  }

  /** @param {number} scrape */
  begin(scrape) {
    this.#scrape = scrape;
    this.sources = [];
    this.retired = [];
    this.#extras.begin();
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
   * @param {import('./family-retired').Retiring} [retiring] if there may be retired totals
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *merge(rule, retiring) {
    for (const source of this.sources) yield* this.translate(source);
    const ended = this.retired.length > 0 && retiring ? yield* settle(this, retiring) : [];
    const all = (this.#merged = [...this.sources, ...ended]);
    this.#starts = undefined;
    this.#setMarks(all);
    const totals = this.#totals;
    totals.begin(this.#scrape, this.rows.count, this.layout, rule);
    for (const source of all) yield* totals.add(source);
    if (rule !== 'sum') totals.finishRule();
    else if (all.length > 1) yield* totals.round();
    const { isComputed, hasBuckets } = kindOf(this.layout);
    const { marks } = this.layout;
    if (isComputed)
      yield* this.#extras.merge(totals.order, `${rule} ${marks}`, digests =>
        mergedQuantiles(digests, marks, rule),
      );
    if (hasBuckets) yield* this.#extras.merge(totals.order, rule, all => mergedBuckets(all, rule));
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
    const { marker, isComputed, hasBuckets, hasOwnNames } = kindOf(layout);
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
      quantileValues: isComputed ? row => this.#extras.of(row) : undefined,
      sampleName: named ? row => this.#nameOf(row) : undefined,
      ...exemplarReaders(this.sources, layout),
      bucketsAt: hasBuckets ? row => this.#extras.of(row) ?? natives().NO_BUCKETS : undefined,
      starts: this,
      cachedText: this.#text,
    };
  }

  /**
   * @param {number} row
   * @returns {number} when the oldest part of its sum started to count, seconds since 1970; 0 if that is
   *   unknown
   */
  startAt(row) {
    this.#starts ??= oldestStarts(this.#merged, this.rows.count);
    return this.#starts[row] ?? UNKNOWN;
  }

  /**
   * @param {number} row of a native histogram
   * @returns {import('../series/merged-buckets').Buckets | undefined} as merged last
   */
  bucketsOf(row) {
    return this.#totals.has(row) ? this.#extras.of(row) : undefined;
  }

  /** Whether the last merge has left no rows. */
  get hasNoRows() {
    return this.#totals.order.length === 0;
  }

  /** @param {number} row of a custom metric object */
  #nameOf(row) {
    const own = this.rows.nameOf(row);
    // An application may use the label itself.
    return own !== undefined && isValidMetricName(own) ? own : undefined;
  }

  /**
   * Looks up the family's row for each row of a source that has none yet.
   *
   * @param {Source} source
   */
  *translate(source) {
    const { rows: map, order } = source;
    map.bind(this.rows);
    const { rows } = map;
    for (let i = 0; i < order.length; i++) {
      const row = order[i];
      if (rows[row] === UNMAPPED) map.translate(this.rows, row);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * The marks of this scrape: the union of all sources', sorted if they differ.
   *
   * @param {Source[]} sources
   */
  #setMarks(sources) {
    const lists = sources.map(({ definition }) => definition.layout.marks);
    const marks = unionOf(lists);
    this.layout = { kind: this.layout.kind, marks };
    if (lists.some(list => list.length !== marks.length)) this.#checkSize(sources);
  }

  /**
   * Checks the size of the page, which has a sample for each row and bound (or quantile). Bounds that differ
   * from worker to worker could make it much larger than all snapshots together.
   *
   * @param {Source[]} sources
   * @throws {RangeError}
   */
  #checkSize(sources) {
    const cellsOf = (/** @type {Source} */ { rowCount, definition }) =>
      rowCount * definition.layout.marks.length;
    const sent = sources.reduce((sum, source) => sum + cellsOf(source), 0);
    const cells = this.rows.count * this.layout.marks.length;
    if (cells > Math.max(sent * MAX_GROWTH_OF_UNION, SMALL_TABLE_CELLS))
      throw new RangeError(`the bounds of its workers differ too much: ${cells} cells`);
  }
}

/**
 * @param {{buckets: import('../source/extras').SourceBuckets, row: number}[]} all of the sources of a row
 * @param {string} rule name of a built-in aggregator
 * @returns {import('../series/merged-buckets').Buckets | undefined} undefined if no source has any
 * @throws {RangeError} if native histograms cannot be merged by that rule
 */
function mergedBuckets(all, rule) {
  if (rule !== 'sum' && rule !== 'first') throw new RangeError(`no ${rule} of native histograms`);
  const { mergeBuckets, countOf, NO_BUCKETS } = natives();
  const read = (rule === 'first' ? all.slice(0, 1) : all).flatMap(
    ({ buckets, row }) => buckets.read(row) ?? [],
  );
  if (read.length === 0) return undefined;
  const merged = mergeBuckets(read);
  return countOf(merged) <= MOST_OBSERVATIONS ? merged : NO_BUCKETS;
}

/**
 * When the rows began to count: as early as the oldest number in their sums, so it does not become later as
 * long as that number is in them.
 *
 * @param {Source[]} sources whose rows are translated
 * @param {number} rowCount of the family
 * @returns {Float64Array} by row of the family, seconds since 1970; UNKNOWN if that of any source is
 */
function oldestStarts(sources, rowCount) {
  const counting = sources.filter(({ starts }) => starts !== undefined);
  const oldest = new Float64Array(counting.length === 0 ? 0 : rowCount).fill(Infinity);
  for (const source of counting) {
    const { starts = UNKNOWN } = source;
    const { rows } = source.rows;
    for (const row of source.order) oldest[rows[row]] = Math.min(oldest[rows[row]], startOf(starts, row));
  }
  return oldest;
}

module.exports = { ClusterFamily };
