'use strict';

// The workload of a worker: a mix of histograms, counters and gauges with a given number of samples (lines of
// its exposition), and the totals that the body of a scrape must show.

const { LABEL_NAMES, labelSet, weightOf } = require('./label-sets.js');
const { randomFrom } = require('./random.js');

const BOUNDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10];
const LINES_OF_A_HISTOGRAM = BOUNDS.length + 3; // +Inf, sum, count

const HISTOGRAMS = ['bench_http_request_duration_seconds', 'bench_db_query_duration_seconds'];
const COUNTERS = [
  'bench_http_requests_total',
  'bench_http_response_bytes_total',
  'bench_cache_lookups_total',
];
const GAUGES = ['bench_queue_depth', 'bench_pool_connections'];

const ONE_IN = 10; // series that change between two scrapes
const OBSERVATIONS_AT_FIRST = 3;

/**
 * @typedef {{lines: number, sum: number, weighted: number}} Total of all lines of one sample name; `weighted`
 *   gives every line a weight of its own (see {@link weightOf}), buckets also by their place
 */

class Workload {
  #metrics = [];
  #random;
  #kind;
  #requests = 0;

  /**
   * Creates and fills all series.
   *
   * @param {object} library prom-client or one that is like it
   * @param {{samples: number, kind: 'integers' | 'floats', seed: number}} settings
   */
  constructor(library, { samples, kind, seed }) {
    this.#random = randomFrom(seed);
    this.#kind = kind;
    const histogramSeries = Math.floor((samples * 0.6) / LINES_OF_A_HISTOGRAM);
    const counterSeries = Math.floor(samples * 0.3);
    const gaugeSeries = samples - histogramSeries * LINES_OF_A_HISTOGRAM - counterSeries;
    this.#create(HISTOGRAMS, histogramSeries, (name, series) => new HistogramLoad(library, name, series));
    this.#create(COUNTERS, counterSeries, (name, series) => new CounterLoad(library, name, series));
    this.#create(GAUGES, gaugeSeries, (name, series) => new GaugeLoad(library, name, series));
    this.#fill();
  }

  #create(names, series, make) {
    names.forEach((name, position) => {
      const share = Math.floor(series / names.length) + (position < series % names.length ? 1 : 0);
      this.#metrics.push(make(name, share));
    });
  }

  #fill() {
    for (const metric of this.#metrics) {
      for (let number = 0; number < metric.series; number++) {
        for (let time = 0; time < metric.recordingsAtFirst; time++)
          metric.record(number, this.#value(metric));
      }
    }
  }

  /**
   * Records again in a tenth of the series, in other ones each round, so that no cache of text or numbers can
   * answer.
   *
   * @param {number} round
   */
  change(round) {
    for (const metric of this.#metrics) {
      for (let number = round % ONE_IN; number < metric.series; number += ONE_IN) {
        metric.record(number, this.#value(metric));
      }
    }
  }

  /**
   * Records once in each metric, as the handling of a request does; in the metric's next series each time.
   */
  recordRequest() {
    this.#requests += 1;
    for (const metric of this.#metrics) {
      if (metric.series > 0) metric.record(this.#requests % metric.series, this.#value(metric));
    }
  }

  #value(metric) {
    const share = this.#random();
    return this.#kind === 'integers' ? Math.floor(share * metric.ceiling) : share * metric.ceiling + 0.1;
  }

  /** @returns {Record<string, Total>} by sample name */
  totals() {
    return Object.assign({}, ...this.#metrics.map(metric => metric.totals()));
  }
}

class CounterLoad {
  ceiling = 1000;
  recordingsAtFirst = 1;
  #counter;
  #name;
  #sum = 0;
  #weighted = 0;

  constructor(library, name, series) {
    this.#counter = new library.Counter({ name, help: `Benchmark counter ${name}`, labelNames: LABEL_NAMES });
    this.#name = name;
    this.series = series;
  }

  record(number, value) {
    this.#counter.inc(labelSet(number), value);
    this.#sum += value;
    this.#weighted += value * weightOf(number);
  }

  totals() {
    return { [this.#name]: { lines: this.series, sum: this.#sum, weighted: this.#weighted } };
  }
}

class GaugeLoad {
  ceiling = 100;
  recordingsAtFirst = 1;
  #gauge;
  #name;
  #values;

  constructor(library, name, series) {
    this.#gauge = new library.Gauge({ name, help: `Benchmark gauge ${name}`, labelNames: LABEL_NAMES });
    this.#name = name;
    this.#values = new Float64Array(series);
    this.series = series;
  }

  record(number, value) {
    this.#gauge.set(labelSet(number), value);
    this.#values[number] = value;
  }

  totals() {
    let sum = 0;
    let weighted = 0;
    this.#values.forEach((value, number) => {
      sum += value;
      weighted += value * weightOf(number);
    });
    return { [this.#name]: { lines: this.series, sum, weighted } };
  }
}

class HistogramLoad {
  ceiling = 12;
  recordingsAtFirst = OBSERVATIONS_AT_FIRST;
  #histogram;
  #name;
  #buckets = { sum: 0, weighted: 0 };
  #observed = { sum: 0, weighted: 0 };
  #count = { sum: 0, weighted: 0 };

  constructor(library, name, series) {
    const help = `Benchmark histogram ${name}`;
    this.#histogram = new library.Histogram({ name, help, labelNames: LABEL_NAMES, buckets: BOUNDS });
    this.#name = name;
    this.series = series;
  }

  record(number, value) {
    this.#histogram.observe(labelSet(number), value);
    const weight = weightOf(number);
    add(this.#observed, value, weight);
    add(this.#count, 1, weight);
    for (let place = 0; place <= BOUNDS.length; place++) {
      if (place === BOUNDS.length || value <= BOUNDS[place]) add(this.#buckets, 1, weight * (place + 1));
    }
  }

  totals() {
    const { series } = this;
    return {
      [`${this.#name}_bucket`]: { lines: series * (BOUNDS.length + 1), ...this.#buckets },
      [`${this.#name}_sum`]: { lines: series, ...this.#observed },
      [`${this.#name}_count`]: { lines: series, ...this.#count },
    };
  }
}

function add(total, value, weight) {
  total.sum += value;
  total.weighted += value * weight;
}

/**
 * The place of a bucket among its histogram's buckets, from 0.
 *
 * @param {string} le
 * @returns {number} -1 if there is none such
 */
function bucketPlace(le) {
  return le === '+Inf' ? BOUNDS.length : BOUNDS.indexOf(Number(le));
}

module.exports = { Workload, bucketPlace };
