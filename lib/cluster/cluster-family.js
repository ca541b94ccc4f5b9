'use strict';

// One metric family of the whole cluster. Its rows persist: a series enters once, and from then on a scrape only moves
// numbers. Each scrape names the sources (one metric of one worker each) that take part, and merges them.

const { debuglog } = require('node:util');
const { LabelIndex } = require('../series/label-index');
const { labelPair } = require('../exposition/label-text');
const { addTo, rounded } = require('./exact-sum');
const { mergeDigests, quantileOf } = require('./digest-merge');
const { UNMAPPED, NAME_LABEL } = require('./row-map');
const { RetiredTotals } = require('./retired-totals');
const { widthOf, columnMap, unionOf, isSame } = require('./column-layout');

const debug = debuglog('prom-client-cluster');

const COMPACT_FROM_ROWS = 1024;
const ROWS_PER_STEP = 8192;

let nextGeneration = 0;

/** Stands for the workers that are gone where others have their id. */
const RETIRED = 0;

/**
 * One metric of one worker, as it takes part in a scrape.
 *
 * @typedef {object} Source
 * @property {number} workerId
 * @property {import('./snapshot-format').Definition} definition
 * @property {RowMap} rows
 * @property {number} rowCount
 * @property {Int32Array | undefined} order the live rows, undefined where all are
 * @property {Float64Array} columns by row; counts of buckets not cumulative
 * @property {(row: number) => SourceDigest} [digestOf] of a summary
 * @property {() => import('./exemplar-block').PlacedExemplar[]} [exemplars] by the source's rows and columns
 */

/**
 * A summary's row in one worker: its digest, or the quantiles themselves where a stock worker sent no more.
 *
 * @typedef {{version: number, centroids: Float64Array} | {quantiles: Map<number, number>}} SourceDigest
 */

/** @typedef {{workerId: number, digest: SourceDigest, weight: number}} Contribution `weight`: how many observations */

/** @typedef {import('./row-map').RowMap} RowMap */

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
  /** @type {(string | undefined)[]} by row */
  #texts = [];
  /** @type {{key: number[], values: Float64Array}[]} by row, of a summary */
  #quantiles = [];
  /** @type {Contribution[][]} by row, of a summary in the scrape that goes on */
  #contributions = [];

  /** @param {import('./snapshot-format').Definition} definition */
  constructor(definition) {
    this.definition = definition;
    this.index = new LabelIndex([]);
    /** Changes when rows got new numbers; no two families have the same. */
    this.generation = nextGeneration++;
    /** Bounds or quantiles of the last merge. */
    this.marks = definition.marks;
    this.retired = new RetiredTotals();
  }

  get rowCount() {
    return this.index.rowCount;
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
    this.#contributions = [];
  }

  /** @param {Source} source */
  addSource(source) {
    // The worker of the lowest id, which comes first, says what the family is.
    if (this.#sources.length === 0) this.definition = source.definition;
    this.#sources.push(source);
  }

  /**
   * The row of a label set, created if need be.
   *
   * @param {readonly string[]} names
   * @param {readonly string[]} values in the same order
   * @returns {number}
   */
  rowOf(names, values) {
    const positions = this.positionsOf(names);
    const { index } = this;
    index.ids.fill(0);
    positions.forEach((position, i) => (index.ids[position] = index.dictionaries[position].add(values[i])));
    return this.rowOfIds(names, values);
  }

  /**
   * The row of the tuple in `index.ids`, created if need be.
   *
   * @param {readonly string[]} names of the labels it stands for, in the order they are printed
   * @param {readonly string[]} values
   * @returns {number}
   */
  rowOfIds(names, values) {
    const row = this.index.findOrAddTuple();
    if (this.#texts[row] === undefined) this.#texts[row] = textOf(names, values, undefined);
    return row;
  }

  /**
   * Where in a tuple labels stand; names that are new to the family get a place.
   *
   * @param {readonly string[]} names
   * @returns {number[]}
   */
  positionsOf(names) {
    this.#ensureLabelNames(names);
    return names.map(name => /** @type {number} */ (this.index.positions.get(name)));
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
    yield* this.#translateRows();
    this.#setMarks();
    this.#makeRoom();
    for (const source of this.#sources) {
      yield* rule === 'sum' ? this.#addSum(source) : this.#addByRule(source, rule);
    }
    if (rule === 'sum') yield* this.#finishSums(now);
    else if (rule === 'average') this.#finishAverages();
    if (this.definition.layout === 'histogram' && rule !== 'sum') this.#undoCumulation();
    if (this.definition.layout === 'summary') yield* this.#mergeQuantiles(rule);
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
    rows.bind(this);
    for (const row of liveRows(source)) {
      if (rows.rows[row] === UNMAPPED) rows.translate(this, row);
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
    if (this.rowCount < COMPACT_FROM_ROWS) return;
    const isMerged = this.#mergedAt === this.#scrape;
    if (isMerged && this.#orderLength * 2 >= this.rowCount) return;
    const rows = new Set(isMerged ? this.#order.subarray(0, this.#orderLength) : this.#translatedRows());
    for (const row of this.retired.rows()) rows.add(row);
    if (rows.size * 2 < this.rowCount) this.#compact([...rows]);
  }

  /**
   * The family as the text format wants it.
   *
   * @returns {import('../exposition/text-format').Family}
   */
  view() {
    const { name, help, type, layout } = this.definition;
    const { width, marks } = this;
    const totals = this.#totals;
    const named = this.index.positions.has(NAME_LABEL);
    const marker = layout === 'histogram' ? 'le' : layout === 'summary' ? 'quantile' : undefined;
    const hidesMarker = marker !== undefined && this.index.positions.has(marker);
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
          ? this.#textWithout(row, /** @type {string} */ (marker))
          : /** @type {string} */ (this.#texts[row]),
      quantileValues: row => this.#quantiles[row].values,
      sampleName: row => this.#labelOf(row, NAME_LABEL) ?? name,
      exemplarAt: this.#exemplarReader(),
    };
  }

  /**
   * The rows of one source as the JSON of prom-client, for an aggregator that is not one of ours.
   *
   * @param {Source} source
   */
  toJson(source) {
    const { definition, rows, columns, digestOf } = source;
    const { name, help, type, aggregator, layout, marks } = definition;
    const width = widthOf(layout, marks.length);
    /** @type {any[]} */
    const values = [];
    rows.bind(this);
    for (const row of liveRows(source)) {
      if (rows.rows[row] === UNMAPPED) rows.translate(this, row);
      const labels = this.#labelsOf(rows.rows[row]);
      const at = row * width;
      if (layout === 'value') {
        const { [NAME_LABEL]: metricName, ...own } = labels;
        values.push(
          metricName === undefined
            ? { value: columns[at], labels }
            : { value: columns[at], metricName, labels: own },
        );
        continue;
      }
      let count = 0;
      if (layout === 'histogram') {
        for (let column = 0; column <= marks.length; column++) {
          count += columns[at + column];
          const le = column === marks.length ? '+Inf' : marks[column];
          values.push({ value: count, metricName: `${name}_bucket`, labels: { ...labels, le } });
        }
        values.push({ value: columns[at + marks.length + 1], metricName: `${name}_sum`, labels });
      } else {
        const digest = digestOf?.(row);
        for (const quantile of marks)
          values.push({ value: quantileFrom(digest, quantile), labels: { ...labels, quantile } });
        count = columns[at + 1];
        values.push({ value: columns[at], metricName: `${name}_sum`, labels });
      }
      values.push({ value: count, metricName: `${name}_count`, labels });
    }
    return { name, help, type, aggregator, values };
  }

  /**
   * The newest exemplar of each place, put together when the first is asked for: only OpenMetrics shows them.
   *
   * @returns {((row: number, column: number) => import('../metric/exemplar').Exemplar | undefined) | undefined}
   */
  #exemplarReader() {
    const sources = this.#sources.filter(({ exemplars }) => exemplars !== undefined);
    if (sources.length === 0) return undefined;
    /** @type {Map<number, import('../metric/exemplar').Exemplar> | undefined} */
    let newest;
    const { width } = this;
    return (row, column) => {
      newest ??= this.#newestExemplars(sources, width);
      return newest.get(row * width + column);
    };
  }

  /**
   * @param {Source[]} sources
   * @param {number} width
   */
  #newestExemplars(sources, width) {
    /** @type {Map<number, import('../metric/exemplar').Exemplar>} by row and column */
    const newest = new Map();
    for (const { definition, exemplars, rows, rowCount } of sources) {
      const columnOf = columnMap(definition.layout, definition.marks, this.marks);
      for (const { row, column, exemplar } of readable(exemplars)) {
        // A row that is not live now was never translated.
        if (row >= rowCount || rows.rows[row] === UNMAPPED || columnOf[column] === undefined) continue;
        const place = rows.rows[row] * width + columnOf[column];
        const known = newest.get(place);
        if (known === undefined || known.timestamp < exemplar.timestamp) newest.set(place, exemplar);
      }
    }
    return newest;
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

  *#translateRows() {
    let steps = 0;
    for (const { rows, order, rowCount } of this.#sources) {
      rows.bind(this);
      const count = order === undefined ? rowCount : order.length;
      for (let i = 0; i < count; i++) {
        const row = order === undefined ? i : order[i];
        if (rows.rows[row] !== UNMAPPED) continue;
        rows.translate(this, row);
        if (++steps % ROWS_PER_STEP === 0) yield;
      }
    }
  }

  /** The bounds or quantiles of this scrape: everybody's, sorted where they differ. */
  #setMarks() {
    const lists = this.#sources.map(({ definition }) => definition.marks);
    if (!this.retired.isEmpty) lists.push(this.retired.marks);
    const marks = unionOf(lists);
    if (!isSame(marks, this.marks)) this.#quantiles = [];
    this.marks = marks;
  }

  #makeRoom() {
    const { rowCount } = this;
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
      if (digestOf !== undefined) this.#contribute(own, workerId, digestOf(row), columns[row * 2 + 1]);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /** @param {number} now */
  *#finishSums(now) {
    const { retired, width } = this;
    const totals = this.#totals;
    const errors = this.#errors;
    if (!retired.isEmpty) {
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
          this.#contribute(row, RETIRED, { version: retired.version, centroids }, retired.sumAt(row, 1));
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
      if (digestOf !== undefined) this.#contribute(own, workerId, digestOf(row), columns[row * 2 + 1]);
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

  /**
   * @param {number} row
   * @param {number} workerId
   * @param {SourceDigest} digest
   * @param {number} weight
   */
  #contribute(row, workerId, digest, weight) {
    (this.#contributions[row] ??= []).push({ workerId, digest, weight });
  }

  /**
   * Quantiles of rows whose digests have changed since they were computed last.
   *
   * @param {string} rule
   */
  *#mergeQuantiles(rule) {
    for (let i = 0; i < this.#orderLength; i++) {
      const row = this.#order[i];
      const contributions = this.#contributions[row] ?? [];
      const key = contributions.flatMap(({ workerId, digest }) => [
        workerId,
        'version' in digest ? digest.version : NaN,
      ]);
      const known = this.#quantiles[row];
      const hasVersions = contributions.every(({ digest }) => 'version' in digest);
      if (hasVersions && known !== undefined && isSame(known.key, key)) continue;
      const values = Float64Array.from(
        rule === 'sum' ? this.#quantilesOf(contributions) : this.#quantilesByRule(contributions, rule),
      );
      this.#quantiles[row] = { key, values };
      yield;
    }
  }

  /** @param {Contribution[]} contributions */
  #quantilesOf(contributions) {
    const centroids = contributions.flatMap(({ digest }) =>
      'centroids' in digest ? [digest.centroids] : [],
    );
    if (centroids.length === contributions.length) {
      const merged = mergeDigests(centroids);
      return this.marks.map(quantile => quantileOf(merged, quantile));
    }
    // Stock workers send no digests. The mean of their quantiles, weighted by count, is the best that is left.
    return this.marks.map(quantile => {
      const known = contributions
        .map(({ digest, weight }) => ({ value: quantileFrom(digest, quantile), weight }))
        .filter(({ value, weight }) => weight > 0 && !Number.isNaN(value));
      const total = known.reduce((sum, { weight }) => sum + weight, 0);
      return total === 0 ? 0 : known.reduce((sum, { value, weight }) => sum + value * weight, 0) / total;
    });
  }

  /**
   * @param {Contribution[]} contributions
   * @param {string} rule
   */
  #quantilesByRule(contributions, rule) {
    return this.marks.map(quantile => {
      const values = contributions
        .map(({ digest }) => quantileFrom(digest, quantile))
        .filter(value => !Number.isNaN(value));
      if (values.length === 0 || rule === 'first') return values[0] ?? NaN;
      const total = values.reduce((left, right) => combined(rule, left, right));
      return rule === 'average' ? total / values.length : total;
    });
  }

  /** @param {readonly string[]} names */
  #ensureLabelNames(names) {
    const { index } = this;
    if (names.every(name => index.positions.has(name))) return;
    const all = [...new Set([...index.names, ...names])];
    const wider = new LabelIndex(all);
    index.dictionaries.forEach((dictionary, position) => (wider.dictionaries[position] = dictionary));
    for (let row = 0; row < index.rowCount; row++) {
      wider.ids.fill(0);
      for (let position = 0; position < index.width; position++)
        wider.ids[position] = index.idAt(row, position);
      wider.findOrAddTuple();
    }
    this.index = wider;
  }

  /**
   * @param {number} row
   * @param {string} name
   * @returns {string | undefined}
   */
  #labelOf(row, name) {
    const position = this.index.positions.get(name);
    const id = position === undefined ? 0 : this.index.idAt(row, position);
    return id === 0 ? undefined : this.index.dictionaries[/** @type {number} */ (position)].values[id];
  }

  /** @param {number} row */
  #labelsOf(row) {
    /** @type {Record<string, string>} */
    const labels = {};
    for (const name of this.index.names) {
      const value = this.#labelOf(row, name);
      if (value !== undefined) labels[name] = value;
    }
    return labels;
  }

  /**
   * @param {number} row
   * @param {string} except
   */
  #textWithout(row, except) {
    const labels = this.#labelsOf(row);
    return textOf(Object.keys(labels), Object.values(labels), except);
  }

  /** @param {number[]} rows those to keep */
  #compact(rows) {
    const old = this.index;
    const index = new LabelIndex(old.names);
    const texts = this.#texts;
    this.#texts = [];
    for (const row of rows) {
      for (let position = 0; position < old.width; position++) {
        const id = old.idAt(row, position);
        index.ids[position] =
          id === 0 ? 0 : index.dictionaries[position].add(old.dictionaries[position].values[id]);
      }
      this.#texts[index.findOrAddTuple()] = texts[row];
    }
    this.index = index;
    this.retired.renumber(rows);
    this.generation = nextGeneration++;
    this.#quantiles = [];
    this.#metAt = new Int32Array(0);
    this.#order = new Int32Array(0);
    this.#orderLength = 0;
    this.#totals = this.#errors = new Float64Array(0);
  }
}

/**
 * Exemplars are read when they are shown. Those that cannot be read cost nothing but themselves.
 *
 * @param {Source['exemplars']} exemplars
 */
function readable(exemplars) {
  try {
    return exemplars?.() ?? [];
  } catch (error) {
    debug('exemplars cannot be read: %s', error);
    return [];
  }
}

/**
 * @param {readonly string[]} names
 * @param {readonly string[]} values
 * @param {string | undefined} except
 */
function textOf(names, values, except) {
  const pairs = [];
  for (let i = 0; i < names.length; i++) {
    if (names[i] !== NAME_LABEL && names[i] !== except) pairs.push(labelPair(names[i], values[i]));
  }
  // join() makes a flat string: one strung together by + would take several times the memory of its characters.
  return pairs.join();
}

/**
 * @param {Pick<Source, 'order' | 'rowCount'>} source
 * @returns {Generator<number>}
 */
function* liveRows({ order, rowCount }) {
  if (order !== undefined) yield* order;
  else for (let row = 0; row < rowCount; row++) yield row;
}

/**
 * @param {string} rule
 * @param {number} left
 * @param {number} right
 */
function combined(rule, left, right) {
  if (rule === 'min') return Math.min(left, right);
  if (rule === 'max') return Math.max(left, right);
  return left + right;
}

/**
 * @param {SourceDigest | undefined} digest
 * @param {number} quantile
 * @returns {number} NaN where it is not known
 */
function quantileFrom(digest, quantile) {
  if (digest === undefined) return NaN;
  return 'centroids' in digest
    ? quantileOf(digest.centroids, quantile)
    : (digest.quantiles.get(quantile) ?? NaN);
}

module.exports = { ClusterFamily };
