'use strict';

// One metric family of the whole cluster. Its rows persist: a series enters once, and from then on a scrape only moves
// numbers. Each scrape names the sources (one metric of one worker each) that take part, and merges them.

const { addTo, rounded } = require('./exact-sum');
const { FamilyRows } = require('./family-rows');
const { FamilyQuantiles } = require('./family-quantiles');
const { exemplarReader } = require('./family-exemplars');
const { sourceAsJson } = require('./family-json');
const { UNMAPPED, NAME_LABEL } = require('./row-map');
const { RetiredTotals, isLasting } = require('./retired-totals');
const { KeptText } = require('./kept-text');
const { runThrough } = require('../../event-loop/slices');
const { widthOf, columnMap, unionOf, isSame, combined } = require('./column-layout');

const COMPACT_FROM_ROWS = 1024;
const ROWS_PER_STEP = 8192;

/** Stands for the workers that are gone where others have their id. */
const RETIRED = -1;

/**
 * One metric of one worker, as it takes part in a scrape.
 *
 * @typedef {object} Source
 * @property {number} workerId
 * @property {import('../wire/snapshot-decoder').Definition} definition
 * @property {RowMap} rows
 * @property {number} rowCount
 * @property {Int32Array | undefined} order the live rows, undefined where all are
 * @property {Float64Array} columns by row; counts of buckets not cumulative
 * @property {(row: number) => SourceDigest} [digestOf] of a summary
 * @property {() => import('../wire/exemplars').PlacedExemplar[]} [exemplars] by the source's rows and columns
 */

/** @typedef {import('./row-map').RowMap} RowMap */
/** @typedef {import('./family-quantiles').SourceDigest} SourceDigest */

class ClusterFamily {
  /** @type {Source[]} of the scrape that goes on */
  #sources = [];
  #scrape = 0;
  #mergedAt = 0;
  /** @type {Int32Array} by row: the last scrape that met it */
  #metAt = new Int32Array(0);
  /** @type {Float64Array} by row and column */
  #totals = new Float64Array(0);
  #errors = new Float64Array(0);
  /** @type {Int32Array} rows of the last scrape in order */
  #order = new Int32Array(0);
  #orderLength = 0;
  #quantiles = new FamilyQuantiles();
  #text = new KeptText();

  /** @param {import('../wire/snapshot-decoder').Definition} definition */
  constructor(definition) {
    this.definition = definition;
    this.rows = new FamilyRows();
    /** Bounds or quantiles of the last merge. */
    this.marks = definition.marks;
    this.retired = new RetiredTotals();
  }

  get width() {
    return widthOf(this.definition.layout, this.marks.length);
  }

  /** Whether anything is left to show. */
  get isEmpty() {
    return this.#sources.length === 0 && this.retired.isEmpty;
  }

  /** @param {number} scrape */
  begin(scrape) {
    this.#scrape = scrape;
    this.#sources = [];
    this.#quantiles.begin();
  }

  /** @param {Source} source */
  addSource(source) {
    // The worker of the lowest id, which comes first, says what the family is.
    if (this.#sources.length === 0) this.definition = source.definition;
    this.#sources.push(source);
  }

  /**
   * Merges the sources of a scrape.
   *
   * @param {string} rule name of a built-in aggregator
   * @param {number} now milliseconds since the epoch
   * @returns {Generator<void, void>} yields where others may have the loop
   */
  *merge(rule, now) {
    this.#mergedAt = this.#scrape;
    this.#orderLength = 0;
    for (const source of this.#sources) yield* this.#translate(source);
    this.#setMarks();
    this.#makeRoom();
    for (const source of this.#sources) {
      yield* rule === 'sum' ? this.#addSum(source) : this.#addByRule(source, rule);
    }
    if (rule === 'sum') yield* this.#finishSums(now);
    else if (rule === 'average') this.#finishAverages();
    if (this.definition.layout === 'histogram' && rule !== 'sum') this.#undoCumulation();
    if (this.definition.layout === 'summary') {
      yield* this.#quantiles.merge(this.#order.subarray(0, this.#orderLength), this.marks, rule);
    }
  }

  /**
   * Adds a dead worker's last numbers to the retired totals.
   *
   * @param {Source} source
   * @param {number} now
   */
  retire(source, now) {
    const { columns, rows, definition } = source;
    const { retired } = this;
    if (this.retired.isEmpty && this.#sources.length === 0) this.definition = definition;
    retired.includeMarks(definition.layout, definition.marks);
    const columnOf = columnMap(definition.layout, definition.marks, retired.marks);
    const width = columnOf.length;
    rows.bind(this.rows);
    runThrough(this.#translate(source));
    for (const row of liveRows(source)) {
      const own = rows.rows[row];
      for (let column = 0; column < width; column++) {
        retired.add(own, columnOf[column], columns[row * width + column]);
      }
      const digest = source.digestOf !== undefined && !definition.windowed ? source.digestOf(row) : undefined;
      if (digest !== undefined && 'centroids' in digest) retired.addDigest(own, digest.centroids);
      retired.touch(own, now);
    }
  }

  /** Drops rows that nobody has had in the last scrape when they are most. */
  compactIfSparse() {
    if (this.rows.count < COMPACT_FROM_ROWS) return;
    const isMerged = this.#mergedAt === this.#scrape;
    if (isMerged && this.#orderLength * 2 >= this.rows.count) return;
    const rows = new Set(isMerged ? this.#order.subarray(0, this.#orderLength) : this.#translatedRows());
    for (const row of this.retired.rows()) rows.add(row);
    if (rows.size * 2 < this.rows.count) this.#compact([...rows]);
  }

  /**
   * The family as the text format wants it.
   *
   * @returns {import('../../exposition/text-format').Family}
   */
  view() {
    const { name, help, type, layout } = this.definition;
    const { width, marks } = this;
    const totals = this.#totals;
    const named = this.rows.hasLabel(NAME_LABEL);
    const marker = layout === 'histogram' ? 'le' : layout === 'summary' ? 'quantile' : undefined;
    const hidesMarker = marker !== undefined && this.rows.hasLabel(marker);
    return {
      name,
      help,
      type,
      layout:
        layout === 'histogram'
          ? { kind: 'histogram', bounds: marks }
          : layout === 'summary'
            ? { kind: 'summary', quantiles: marks }
            : { kind: named ? 'samples' : 'value' },
      rows: () => this.#order.subarray(0, this.#orderLength),
      pageOf: () => totals,
      offsetOf: row => row * width,
      labelText: (row, marked) =>
        marked && hidesMarker
          ? this.rows.textWithout(row, /** @type {string} */ (marker))
          : this.rows.textOf(row),
      quantileValues: row => this.#quantiles.valuesOf(row),
      sampleName: row => this.rows.labelOf(row, NAME_LABEL) ?? name,
      exemplarAt: exemplarReader(this.#sources, marks, width),
      kept: this.#text,
      labelVersion: `${this.rows.generation} ${hidesMarker}`,
    };
  }

  /**
   * One source as the JSON of prom-client, for an aggregator that is not one of ours.
   *
   * @param {Source} source
   */
  toJson(source) {
    runThrough(this.#translate(source));
    return sourceAsJson(source, liveRows(source), row => this.rows.labelsOf(source.rows.rows[row]));
  }

  /** @returns {readonly Source[]} */
  get sources() {
    return this.#sources;
  }

  /** The rows of a family that a program's own function aggregates. */
  *#translatedRows() {
    for (const source of this.#sources) {
      for (const row of liveRows(source)) if (source.rows.rows[row] !== UNMAPPED) yield source.rows.rows[row];
    }
  }

  /**
   * Looks up the family's rows for those of a source that were not yet.
   *
   * @param {Source} source
   */
  *#translate({ rows, order, rowCount }) {
    rows.bind(this.rows);
    const count = order === undefined ? rowCount : order.length;
    for (let i = 0; i < count; i++) {
      const row = order === undefined ? i : order[i];
      if (rows.rows[row] === UNMAPPED) rows.translate(this.rows, row);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /** Whether there are retired totals to add: not to a gauge that has taken the name of a counter. */
  get #hasRetired() {
    return !this.retired.isEmpty && isLasting(this.definition);
  }

  /** The bounds or quantiles of this scrape: everybody's, sorted where they differ. */
  #setMarks() {
    const lists = this.#sources.map(({ definition }) => definition.marks);
    if (this.#hasRetired) lists.push(this.retired.marks);
    this.marks = unionOf(lists);
  }

  #makeRoom() {
    const rowCount = this.rows.count;
    const numbers = rowCount * this.width;
    if (this.#totals.length < numbers) {
      const capacity = Math.max(numbers, Math.min(this.#totals.length * 2, numbers * 2));
      this.#totals = new Float64Array(capacity);
      this.#errors = new Float64Array(capacity);
    }
    if (this.#metAt.length < rowCount) {
      const capacity = Math.max(rowCount, this.#metAt.length * 2);
      this.#metAt = new Int32Array(capacity);
      this.#order = new Int32Array(capacity);
    }
  }

  /**
   * Notes that a row takes part in this scrape.
   *
   * @param {number} row
   * @returns {boolean} whether it is new to it
   */
  #meet(row) {
    if (this.#metAt[row] === this.#scrape) return false;
    this.#metAt[row] = this.#scrape;
    this.#order[this.#orderLength++] = row;
    return true;
  }

  /** @param {Source} source */
  *#addSum({ workerId, definition, rows, rowCount, order, columns, digestOf }) {
    const totals = this.#totals;
    const errors = this.#errors;
    const { width } = this;
    const same = isSame(definition.marks, this.marks);
    const columnOf = same ? undefined : columnMap(definition.layout, definition.marks, this.marks);
    const ownWidth = widthOf(definition.layout, definition.marks.length);
    const count = order === undefined ? rowCount : order.length;
    for (let i = 0; i < count; i++) {
      const row = order === undefined ? i : order[i];
      const own = rows.rows[row];
      const from = row * ownWidth;
      const to = own * width;
      if (this.#meet(own)) {
        for (let column = 0; column < width; column++) {
          totals[to + column] = columnOf === undefined ? columns[from + column] : 0;
          errors[to + column] = 0;
        }
        if (columnOf !== undefined)
          for (let c = 0; c < ownWidth; c++) totals[to + columnOf[c]] += columns[from + c];
      } else {
        for (let c = 0; c < ownWidth; c++) {
          addTo(totals, errors, columnOf === undefined ? to + c : to + columnOf[c], columns[from + c]);
        }
      }
      if (digestOf !== undefined)
        this.#quantiles.contribute(own, workerId, digestOf(row), columns[row * 2 + 1]);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /** @param {number} now */
  *#finishSums(now) {
    const { retired, width } = this;
    const totals = this.#totals;
    const errors = this.#errors;
    if (this.#hasRetired) {
      const live = this.#orderLength;
      for (let i = 0; i < live; i++) if (retired.has(this.#order[i])) retired.touch(this.#order[i], now);
      const columnOf = columnMap(this.definition.layout, retired.marks, this.marks);
      for (const row of retired.rows()) {
        const to = row * width;
        if (this.#meet(row)) {
          totals.fill(0, to, to + width);
          errors.fill(0, to, to + width);
        }
        for (let c = 0; c < columnOf.length; c++) {
          addTo(totals, errors, to + columnOf[c], retired.sumAt(row, c));
          errors[to + columnOf[c]] += retired.errorAt(row, c);
        }
        const centroids = retired.digestOf(row);
        if (centroids !== undefined) {
          this.#quantiles.contribute(
            row,
            RETIRED,
            { version: retired.version, centroids },
            retired.sumAt(row, 1),
          );
        }
      }
    } else if (this.#sources.length === 1) {
      return; // nothing was added to anything
    }
    for (let i = 0; i < this.#orderLength; i++) {
      const from = this.#order[i] * width;
      for (let at = from; at < from + width; at++) totals[at] = rounded(totals[at], errors[at]);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * Aggregators other than the sum see values as they are exposed: buckets cumulated.
   *
   * @param {Source} source
   * @param {string} rule
   */
  *#addByRule({ workerId, definition, rows, rowCount, order, columns, digestOf }, rule) {
    const totals = this.#totals;
    const contributions = this.#errors;
    const { width } = this;
    const { layout } = definition;
    const columnOf = columnMap(layout, definition.marks, this.marks);
    const ownWidth = columnOf.length;
    const values = new Float64Array(width);
    const count = order === undefined ? rowCount : order.length;
    for (let i = 0; i < count; i++) {
      const row = order === undefined ? i : order[i];
      const own = rows.rows[row];
      const to = own * width;
      values.fill(0);
      for (let c = 0; c < ownWidth; c++) values[columnOf[c]] += columns[row * ownWidth + c];
      if (layout === 'histogram') for (let c = 1; c < width - 1; c++) values[c] += values[c - 1];
      if (this.#meet(own)) {
        totals.set(values, to);
        contributions.fill(1, to, to + width);
      } else if (rule !== 'first') {
        for (let c = 0; c < width; c++) {
          totals[to + c] = combined(rule, totals[to + c], values[c]);
          contributions[to + c]++;
        }
      }
      if (digestOf !== undefined)
        this.#quantiles.contribute(own, workerId, digestOf(row), columns[row * 2 + 1]);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  #finishAverages() {
    const { width } = this;
    for (let i = 0; i < this.#orderLength; i++) {
      const from = this.#order[i] * width;
      for (let at = from; at < from + width; at++) this.#totals[at] /= this.#errors[at];
    }
  }

  #undoCumulation() {
    const { width } = this;
    for (let i = 0; i < this.#orderLength; i++) {
      const from = this.#order[i] * width;
      for (let c = width - 2; c > 0; c--) this.#totals[from + c] -= this.#totals[from + c - 1];
    }
  }

  /** @param {number[]} rows those to keep */
  #compact(rows) {
    this.rows.compact(rows);
    this.retired.renumber(rows);
    this.#quantiles.forget();
    this.#text = new KeptText();
    this.#metAt = new Int32Array(0);
    this.#order = new Int32Array(0);
    this.#orderLength = 0;
    this.#totals = this.#errors = new Float64Array(0);
  }
}

/**
 * @param {Pick<Source, 'order' | 'rowCount'>} source
 * @returns {Generator<number>}
 */
function* liveRows({ order, rowCount }) {
  if (order !== undefined) yield* order;
  else for (let row = 0; row < rowCount; row++) yield row;
}

module.exports = { ClusterFamily };
