'use strict';

const { RequestRecord } = require('./request-record');
const { SERVICES, requestLabelSets } = require('./traffic');

const DURATION_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZE_BOUNDS = [64, 128, 256, 512, 1024, 2048, 4096];
/** The one native histogram. */
const NATIVE_HISTOGRAM = 'demo_request_duration_seconds';
const SAMPLES_PER_DURATION_SERIES = DURATION_BOUNDS.length + 3;

const TABLES = ['accounts', 'addresses', 'carts', 'items', 'orders', 'payments', 'reviews', 'sessions'];
const OPERATIONS = ['select', 'insert', 'update', 'delete'];
const CACHES = ['page', 'session', 'price'];
const QUEUES = ['mail', 'invoice', 'thumbnail', 'index', 'webhook', 'audit'];

/**
 * The metrics of one worker. Every request is recorded twice: in the metrics, and in a plain {@link
 * RequestRecord} to check them against.
 */
class ApplicationMetrics {
  #arrivals;
  #inFlight;
  #durations;
  #allDurations;
  #sizes;

  /**
   * @param {object} client the metrics library
   * @param {number} samples how many samples the worker shall expose, roughly
   */
  constructor(client, samples) {
    this.record = new RequestRecord({ durationBounds: DURATION_BOUNDS, sizeBounds: SIZE_BOUNDS });
    this.#arrivals = new client.Counter({
      name: 'demo_requests_total',
      help: 'Requests that arrived',
      labelNames: ['service', 'method'],
    });
    this.#inFlight = new client.Gauge({
      name: 'http_requests_in_flight',
      help: 'Requests being handled',
      labelNames: ['service'],
    });
    this.#sizes = new client.Histogram({
      name: 'http_response_size_bytes',
      help: 'Size of response bodies',
      labelNames: ['service'],
      buckets: SIZE_BOUNDS,
    });
    // prom-client knows no native histograms, and has its classic buckets only.
    this.#allDurations = new client.Histogram({
      name: NATIVE_HISTOGRAM,
      help: 'Time from the arrival of a request to the end of its response, of all requests',
      nativeHistogramBucketFactor: 1.1,
    });
    const others = fillBackgroundMetrics(client);
    this.#durations = new client.Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its response',
      labelNames: ['service', 'method', 'route', 'status'],
      buckets: DURATION_BOUNDS,
    });
    this.#fillDurations(Math.ceil((samples - others) / SAMPLES_PER_DURATION_SERIES));
  }

  /** Two observations for every label set, spread over all buckets, as if the service had run for a while. */
  #fillDurations(series) {
    const random = pseudoRandom(series);
    for (const labels of requestLabelSets(series)) {
      for (let i = 0; i < 2; i++) this.#observeDuration(labels, 0.002 * 6000 ** random());
    }
  }

  #observeDuration(labels, seconds) {
    this.#durations.observe(labels, seconds);
    this.record.durations.observe(seconds);
  }

  /**
   * @param {string} service
   * @param {string} method
   */
  requestArrived(service, method) {
    this.record.countArrival(service);
    this.#arrivals.inc({ service, method });
    this.#inFlight.inc({ service });
  }

  /**
   * @param {{service: string, method: string, route: string, status: number}} labels
   * @param {number} seconds how long it took
   * @param {number} bytes size of the response's body
   */
  requestDone(labels, seconds, bytes) {
    const { service } = labels;
    this.#inFlight.dec({ service });
    this.#observeDuration(labels, seconds);
    this.#allDurations.observe(seconds);
    this.#sizes.observe({ service }, bytes);
    this.record.sizes.observe(bytes);
  }
}

/**
 * Counters and gauges of a service other than those of its requests.
 *
 * @returns {number} how many samples they have
 */
function fillBackgroundMetrics(client) {
  const random = pseudoRandom(1);
  const queries = new client.Counter({
    name: 'db_queries_total',
    help: 'Queries sent to the database',
    labelNames: ['service', 'table', 'operation'],
  });
  const lookups = new client.Counter({
    name: 'cache_lookups_total',
    help: 'Lookups in a cache',
    labelNames: ['service', 'cache', 'outcome'],
  });
  const connections = new client.Gauge({
    name: 'db_pool_connections',
    help: 'Connections in the database pool',
    labelNames: ['service', 'state'],
  });
  const depth = new client.Gauge({
    name: 'queue_depth',
    help: 'Jobs that wait in a queue, as the worker saw it last',
    labelNames: ['queue'],
    aggregator: 'max',
  });
  const build = new client.Gauge({
    name: 'build_info',
    help: 'Version of the running code',
    labelNames: ['version', 'revision'],
    aggregator: 'first',
  });
  let samples = 0;
  const fill = (metric, record, labels, most) => {
    metric[record](labels, Math.ceil(random() * most));
    samples++;
  };
  for (const service of SERVICES) {
    for (const table of TABLES) {
      for (const operation of OPERATIONS) fill(queries, 'inc', { service, table, operation }, 5000);
    }
    for (const cache of CACHES) {
      for (const outcome of ['hit', 'miss']) fill(lookups, 'inc', { service, cache, outcome }, 20000);
    }
    for (const state of ['busy', 'idle', 'opening']) fill(connections, 'set', { service, state }, 10);
  }
  for (const queue of QUEUES) fill(depth, 'set', { queue }, 300);
  fill(build, 'set', { version: '3.14.0', revision: 'c0ffee1' }, 1);
  return samples;
}

/**
 * A Lehmer generator: the same numbers in every run, so that runs can be compared.
 *
 * @param {number} seed
 * @returns {() => number} numbers from 0 up to 1
 */
function pseudoRandom(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

module.exports = { ApplicationMetrics, NATIVE_HISTOGRAM };
