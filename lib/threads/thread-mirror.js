'use strict';

// Runs in the process's hub. The registries of one thread, as far as it has published them: its metrics and
// label sets from the log, its numbers in shared memory. Whatever comes from the thread is checked. After the
// first record that is not valid, nothing more is read, and what is known stays.

const { debuglog } = require('node:util');
const { isFloat64Array } = require('node:util/types');
const { VIEW, DEFAULT_LABELS } = require('../registry/metric-view');
const { Exemplar, Exemplars } = require('../metric/exemplar');
const { LogReader } = require('./shared-log');
const { MirrorTable } = require('./mirror-table');
const {
  REGISTRY,
  DEFINE,
  CUSTOM,
  DROP,
  PAGE,
  FORM,
  VALUE,
  ROW,
  ORDER,
  REMOVE,
  CLEAR,
  OVERFLOW,
} = require('./thread-messages');

const debug = debuglog('prom-client-cluster');

const MOST_SHIFT = 20;
const MOST_WIDTH = 2 ** 20;
/**
 * Where the records that need memory have its number.
 *
 * @type {Record<number, number>}
 */
const MEMORY_AT = { [PAGE]: 2, [OVERFLOW]: 1 };

/** This takes 0.05 ms. */
const RECORDS_PER_STEP = 128;
const NO_CENTROIDS = new Float64Array(0);

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/**
 * @typedef {{number: number, name: string, collect?: () => any, get?: () => any,
 *   [VIEW]?: () => MetricView}} MirrorMetric
 */
/**
 * @typedef {{[DEFAULT_LABELS]: Record<string, string>,
 *   getMetricsAsArray: () => MirrorMetric[]}} MirrorRegistry
 */

/**
 * @typedef {{registry: number, metric: MirrorMetric, view?: MetricView, digests: MirrorDigest[]}} MirrorEntry
 */

/** The digest of one row, as the thread sent it last. */
class MirrorDigest {
  version = 0;
  /** @type {Float64Array} */
  #centroids = NO_CENTROIDS;

  /** @param {Float64Array} centroids */
  set(centroids) {
    this.#centroids = centroids;
    this.version++;
  }

  /** @returns {any[]} as TimeWindowQuantiles.slices() */
  slices() {
    return [{ isEmpty: this.#centroids.length === 0, centroids: () => this.#centroids }];
  }
}

class ThreadMirror {
  #log = new LogReader();
  #collect;
  /** @type {Map<number, SharedArrayBuffer>} */
  #memories = new Map();
  /** @type {Map<number, MirrorRegistry>} */
  #registries = new Map();
  /** @type {Map<number, MirrorEntry>} */
  #metrics = new Map();
  /** @type {Map<number, unknown>} by number of a custom metric object: what its get() returned last */
  #customs = new Map();
  #isBroken = false;

  /**
   * @param {SharedArrayBuffer} log its first chunk
   * @param {(name: string) => Promise<void> | undefined} collect has the thread run its hooks; rejects if
   *   that of a metric failed
   */
  constructor(log, collect) {
    this.#collect = collect;
    this.#log.add(log);
  }

  /** @returns {MirrorRegistry[]} */
  get registries() {
    return [...this.#registries.values()];
  }

  /** @param {SharedArrayBuffer} chunk of the log */
  addChunk(chunk) {
    this.#guard(() => this.#log.add(chunk));
  }

  /**
   * @param {number} number
   * @param {SharedArrayBuffer} memory
   */
  addMemory(number, memory) {
    this.#memories.set(number, memory);
  }

  /**
   * Reads what the thread has published since.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *read() {
    while (this.#readSome()) yield;
  }

  /** @returns {boolean} whether there may be more records */
  #readSome() {
    if (this.#isBroken) return false;
    const log = this.#log;
    try {
      for (let i = 0; i < RECORDS_PER_STEP; i++) {
        if (!log.next()) return false;
        // Its message may come a moment after the record.
        if (log.kind in MEMORY_AT && !this.#memories.has(this.#integer(MEMORY_AT[log.kind]))) return false;
        this.#apply();
        log.skip();
      }
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  /**
   * Digests, exemplars and custom metric objects.
   *
   * @param {any} message
   */
  applyExtras({ extras, customs }) {
    this.#guard(() => {
      for (const [number, row, centroids] of extras?.digests ?? []) this.#setDigest(number, row, centroids);
      for (const [number, list] of extras?.exemplars ?? []) this.#setExemplars(number, list);
      for (const [number, json] of customs ?? []) this.#customs.set(number, json);
    });
  }

  /** @param {() => void} apply */
  #guard(apply) {
    if (this.#isBroken) return;
    try {
      apply();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#isBroken = true;
    debug('what a thread has published cannot be read: %O', error);
  }

  /** Applies the record that the log has found. */
  #apply() {
    const log = this.#log;
    switch (log.kind) {
      case REGISTRY:
        this.#setDefaultLabels(this.#integer(0), JSON.parse(log.text));
        break;
      case DEFINE:
        this.#define(this.#integer(0), this.#integer(1), JSON.parse(log.text));
        break;
      case CUSTOM:
        this.#addCustom(this.#integer(0), this.#integer(1), log.text);
        break;
      case DROP:
        this.#drop(this.#integer(0));
        break;
      default:
        this.#applyToTable(log.kind, this.#tableOf(this.#integer(0)));
    }
  }

  /**
   * @param {number} kind
   * @param {{table: MirrorTable, digests: MirrorDigest[]}} metric
   */
  #applyToTable(kind, { table, digests }) {
    switch (kind) {
      case ROW: {
        const row = this.#integer(1);
        table.follow(row, this.#integer(2), this.#valueAt);
        digests[row]?.set(NO_CENTROIDS);
        break;
      }
      case VALUE:
        table.addValue(this.#integer(1), this.#log.text);
        break;
      case FORM:
        table.addForm(this.#integersFrom(1));
        break;
      case PAGE:
        this.#setPage(table);
        break;
      case ORDER:
        table.setOrder(this.#integersFrom(1));
        break;
      case REMOVE: {
        const row = this.#integer(1);
        if (row >= table.rowCount || !table.isLive(row)) throw new Error('a row is not live');
        table.removeRow(row);
        break;
      }
      case CLEAR:
        table.clear();
        break;
      case OVERFLOW:
        table.setOverflowCount(this.#memoryAt(1), this.#integer(2));
        break;
      default:
        throw new Error('a record is of an unknown kind');
    }
  }

  /** @param {MirrorTable} table */
  #setPage(table) {
    table.setPage(this.#integer(1), this.#memoryAt(2), this.#integer(3), this.#integer(4));
    // Nothing else is in it.
    if (table.index !== undefined) this.#memories.delete(this.#integer(2));
  }

  /** @param {number} i where the record has its number */
  #memoryAt(i) {
    return /** @type {SharedArrayBuffer} */ (this.#memories.get(this.#integer(i)));
  }

  /** @param {number} position of a label of the row that the log has found */
  #valueAt = position => this.#integer(3 + position);

  /** @param {number} i */
  #integer(i) {
    const value = i < this.#log.count ? this.#log.integer(i) : -1;
    if (value < 0) throw new RangeError('a record of the log is not valid');
    return value;
  }

  /** @param {number} first */
  #integersFrom(first) {
    return Array.from({ length: this.#log.count - first }, (_, i) => this.#integer(first + i));
  }

  /**
   * @param {number} number
   * @param {any} pairs
   */
  #setDefaultLabels(number, pairs) {
    const labels = Object.fromEntries(
      pairs.map((/** @type {any} */ [name, value]) => [text(name), text(value)]),
    );
    const registry = this.#registries.get(number);
    if (registry !== undefined) registry[DEFAULT_LABELS] = labels;
    else
      this.#registries.set(number, { [DEFAULT_LABELS]: labels, getMetricsAsArray: () => this.#of(number) });
  }

  /**
   * @param {number} registry
   * @returns {MirrorMetric[]}
   */
  #of(registry) {
    return [...this.#metrics.values()]
      .filter(entry => entry.registry === registry)
      .map(({ metric }) => metric);
  }

  /**
   * @param {number} number
   * @param {number} registry
   * @param {any} definition
   */
  #define(number, registry, { layout, windowed, hasHook, labelNames, width, pageShift, ...texts }) {
    [width, pageShift].forEach(checkInteger);
    if (pageShift > MOST_SHIFT || width < 1 || width > MOST_WIDTH) throw new Error('a table is not valid');
    const table = new MirrorTable(labelNames.map(text), width, pageShift);
    const isSummary = layout?.kind === 'summary';
    /** @type {MirrorDigest[]} */
    const digests = [];
    const digestOf = (/** @type {number} */ row) => (digests[row] ??= new MirrorDigest());
    /** @type {any} */
    const view = {
      ...{ name: text(texts.name), help: text(texts.help), type: text(texts.type) },
      ...{ aggregator: text(texts.aggregator), layout: checkedLayout(layout, width), table },
      ...(isSummary ? { digestOf, windowed: windowed === true } : {}),
    };
    /** @type {MirrorMetric} */
    const metric = { number, name: view.name, [VIEW]: () => view };
    if (hasHook) metric.collect = () => this.#collect(view.name);
    this.#add(number, registry, metric, view, digests);
  }

  /**
   * @param {number} number
   * @param {number} registry
   * @param {string} name
   */
  #addCustom(number, registry, name) {
    this.#add(number, registry, { number, name, get: () => this.#custom(number, name) });
  }

  /**
   * @param {number} number
   * @param {number} registry
   * @param {MirrorMetric} metric
   * @param {MetricView} [view]
   * @param {MirrorDigest[]} [digests]
   */
  #add(number, registry, metric, view, digests = []) {
    if (!this.#registries.has(registry) || this.#metrics.has(number))
      throw new Error('a metric is not valid');
    this.#metrics.set(number, { registry, metric, view, digests });
  }

  /** @param {number} number */
  #drop(number) {
    this.#metrics.delete(number);
    this.#customs.delete(number);
  }

  /**
   * @param {number} number
   * @param {string} name
   */
  #custom(number, name) {
    const read = () => this.#customs.get(number);
    const collected = this.#collect(name);
    return collected === undefined ? read() : collected.then(read);
  }

  /** @param {number} number */
  #tableOf(number) {
    const { view, digests } = this.#metrics.get(number) ?? {};
    if (view === undefined || digests === undefined) throw new Error('a metric is unknown');
    return { table: /** @type {MirrorTable} */ (view.table), view, digests };
  }

  /**
   * @param {number} number
   * @param {number} row
   * @param {unknown} centroids
   */
  #setDigest(number, row, centroids) {
    // The metric may have been dropped since.
    if (!this.#metrics.has(number)) return;
    const { view, table } = this.#tableOf(number);
    checkInteger(row);
    if (!isFloat64Array(centroids) || centroids.length % 2 === 1 || row >= table.rowCount)
      throw new Error('a digest is not valid');
    /** @type {any} */ (view).digestOf?.(row).set(centroids);
  }

  /**
   * @param {number} number
   * @param {any[]} list
   */
  #setExemplars(number, list) {
    if (!this.#metrics.has(number)) return;
    const { view, table } = this.#tableOf(number);
    const exemplars = new Exemplars(table.width);
    for (const [row, column, labels, value, timestamp] of list) {
      [row, column].forEach(checkInteger);
      if (row >= table.rowCount || column >= table.width) throw new Error('an exemplar is not valid');
      const labelSet = Object.fromEntries(labels.map((/** @type {any} */ pair) => pair.map(text)));
      exemplars.put(row, column, new Exemplar(labelSet, Number(value), Number(timestamp)));
    }
    view.exemplars = exemplars;
  }
}

/** @param {unknown} value */
function checkInteger(value) {
  if (!Number.isSafeInteger(value) || /** @type {number} */ (value) < 0)
    throw new TypeError('a number of a thread is not valid');
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function text(value) {
  if (typeof value !== 'string') throw new TypeError('a text of a thread is not valid');
  return value;
}

/**
 * @param {any} layout
 * @param {number} width that a table of this layout has
 * @returns {any}
 */
function checkedLayout(layout, width) {
  const list = layout.kind === 'histogram' ? layout.bounds : layout.quantiles;
  const columns = { value: 1, summary: 2, histogram: (list?.length ?? 0) + 2 }[String(layout.kind)];
  if (columns !== width) throw new Error('a layout is not valid');
  if (layout.kind === 'value') return { kind: 'value' };
  const numbers = Array.from(list, Number);
  return layout.kind === 'histogram'
    ? { kind: 'histogram', bounds: numbers }
    : { kind: 'summary', quantiles: numbers };
}

module.exports = { ThreadMirror };
