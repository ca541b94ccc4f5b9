'use strict';

// Runs in the process's hub. What threads that have ended had counted: counters, histograms and summaries
// with the aggregator `sum`, added up. Gauges end with their thread.

const { VIEW, DEFAULT_LABELS } = require('../registry/metric-view');
const { mergeCentroids } = require('../metric/centroids');
const { SeriesTable } = require('../series/series-table');

const DELTA = 0.01; // as lib/metric/observations.js has it
const TYPES = new Set(['counter', 'histogram', 'summary']);
const NO_CENTROIDS = new Float64Array(0);

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./thread-mirror').MirrorRegistry} MirrorRegistry */

/**
 * Totals of one metric. `rest` has the rounding error of each total: the page adds it up with the totals, so
 * that a sum never falls when a thread becomes a part of it.
 *
 * @typedef {{registry: string, view: MetricView, rest: MetricView, digests: RetiredDigest[]}} Totals
 */

class RetiredDigest {
  version = 0;
  /** @type {Float64Array} */
  #centroids = NO_CENTROIDS;

  /** @param {Float64Array} centroids of another thread */
  add(centroids) {
    this.#centroids = mergeCentroids([this.#centroids, centroids], DELTA);
    this.version++;
  }

  /** @returns {any[]} as TimeWindowQuantiles.slices() */
  slices() {
    return [{ isEmpty: this.#centroids.length === 0, centroids: () => this.#centroids }];
  }
}

class RetiredThreads {
  /** @type {Map<string, Totals>} by definition */
  #totals = new Map();
  /** @type {Map<string, MirrorRegistry>} by default labels */
  #registries = new Map();

  /** @returns {MirrorRegistry[]} */
  get registries() {
    return [...this.#registries.values()];
  }

  /** @param {MirrorRegistry[]} registries of a thread that has ended */
  add(registries) {
    for (const registry of registries) {
      for (const metric of registry.getMetricsAsArray()) {
        const view = metric[VIEW]?.();
        if (view === undefined || view.aggregator !== 'sum' || !TYPES.has(view.type)) continue;
        this.#addMetric(this.#totalsOf(view, registry[DEFAULT_LABELS]), view);
      }
    }
  }

  /**
   * @param {MetricView} view
   * @param {Record<string, string>} defaultLabels
   * @returns {Totals}
   */
  #totalsOf(view, defaultLabels) {
    const { name, help, type, aggregator, layout, windowed } = view;
    const { labelNames, width } = view.table;
    const registry = JSON.stringify(Object.entries(defaultLabels));
    const key = JSON.stringify([registry, name, type, windowed, layout, labelNames]);
    let totals = this.#totals.get(key);
    if (totals === undefined) {
      /** @type {RetiredDigest[]} */
      const digests = [];
      const digestOf = (/** @type {number} */ row) => (digests[row] ??= new RetiredDigest());
      const withTable = () => {
        const table = new SeriesTable(labelNames, width);
        const more = layout.kind === 'summary' ? { digestOf, windowed } : {};
        return /** @type {any} */ ({ name, help, type, aggregator, layout, table, ...more });
      };
      totals = { registry, view: withTable(), rest: withTable(), digests };
      // The digests belong to the totals alone.
      if (layout.kind === 'summary') totals.rest.digestOf = () => /** @type {any} */ (new RetiredDigest());
      this.#totals.set(key, totals);
      this.#addRegistry(registry, defaultLabels);
    }
    return totals;
  }

  /**
   * @param {string} key
   * @param {Record<string, string>} defaultLabels
   */
  #addRegistry(key, defaultLabels) {
    if (this.#registries.has(key)) return;
    this.#registries.set(key, {
      [DEFAULT_LABELS]: defaultLabels,
      getMetricsAsArray: () => {
        const all = [...this.#totals.values()].filter(({ registry }) => registry === key);
        return all.flatMap(({ view, rest }) =>
          (rest.table.rowCount === 0 ? [view] : [view, rest]).map(asMetric),
        );
      },
    });
  }

  /**
   * @param {Totals} totals
   * @param {MetricView} view of a thread
   */
  #addMetric({ view: { table, digestOf, windowed }, rest }, view) {
    const { width } = table;
    for (const from of view.table.liveRows()) {
      const labels = view.table.labelsOf(from);
      const row = table.start(labels);
      const page = table.pageOf(row);
      const offset = table.offsetOf(row);
      const source = view.table.pageOf(from);
      const start = view.table.offsetOf(from);
      for (let column = 0; column < width; column++) {
        const before = page[offset + column];
        const added = source[start + column];
        const sum = before + added;
        page[offset + column] = sum;
        const error = roundingError(before, added, sum);
        if (error === 0 || !Number.isFinite(error)) continue;
        const restRow = rest.table.start(labels);
        rest.table.pageOf(restRow)[rest.table.offsetOf(restRow) + column] += error;
      }
      const centroids = windowed ? undefined : view.digestOf?.(from).slices()[0].centroids();
      if (centroids !== undefined && centroids.length > 0) /** @type {any} */ (digestOf)(row).add(centroids);
    }
  }
}

/** @param {MetricView} view */
function asMetric(view) {
  return { number: 0, name: view.name, [VIEW]: () => view };
}

/**
 * D. E. Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B.
 *
 * @param {number} a
 * @param {number} b
 * @param {number} sum of both, as rounded
 * @returns {number} what the rounding took away
 */
function roundingError(a, b, sum) {
  const second = sum - a;
  return a - (sum - second) + (b - second);
}

module.exports = { RetiredThreads };
