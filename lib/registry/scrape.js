'use strict';

// One scrape of a registry: starts the `collect` hooks, reads the metrics, has them written. What no hook holds up is
// read in the turn of the call, for a program may reset its metrics right after it. A small page is written at once. Of
// a large one only the numbers are copied (0.2 ms for 100,000 of them); it is written in slices that leave the
// loop to the application.

const { renderFamily, joinFamilies } = require('../exposition/text-format');
const { renderBytes } = require('../exposition/text-bytes');
const { runInSlices, turn } = require('../event-loop/slices');
const { liveFamily, capturedFamily } = require('../exposition/live-family');
const { sampleFamily } = require('../exposition/sample-family');
const { viewOf } = require('./metric-view');

// Written at once up to here: some 2 ms.
const AT_ONCE_SAMPLES = 4096;

// The memory that a page starts with. A page that outgrows it is copied in one go (6 ms for 12 MB), so the first guess is
// generous: memory that is not written to costs nothing.
let bytesPerSample = 256;
const MOST_BYTES_PER_SAMPLE = 512;

// For the next page, whose numbers may be longer.
const SPARE = 1.1;

// Room for the metrics of others, whose samples are not counted.
const LEAST_BYTES = 1 << 18;

/** @typedef {import('./registry').RegisteredMetric} RegisteredMetric */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../exposition/text-format').Family} Family */

/**
 * What a registry says about all of its metrics.
 *
 * @typedef {object} Setting
 * @property {Record<string, unknown>} defaultLabels
 * @property {boolean} openMetrics
 */

/**
 * A metric whose hook was started.
 *
 * @typedef {object} Started
 * @property {RegisteredMetric} metric
 * @property {MetricView | undefined} view undefined for somebody's own metric
 * @property {any} hook a promise where it takes its time; of somebody's own metric, its JSON
 */

/**
 * @param {RegisteredMetric[]} metrics
 * @param {() => Setting} setting asked whenever a metric is read
 * @returns {Promise<string>} the page
 */
async function scrapeText(metrics, setting) {
  const { openMetrics } = setting();
  const started = metrics.map(start);
  const samples = sampleCount(started);
  if (samples <= AT_ONCE_SAMPLES) {
    const texts = await all(started.map(each => read(each, setting, writeFamily)));
    return joinFamilies(texts, openMetrics);
  }
  const { buffer, length, ascii } = await writeInSlices(started, setting, samples);
  await turn();
  // Not joined from pieces: V8 would put off the copying to one long pause at the end.
  return Buffer.from(buffer, 0, length).toString(ascii ? 'latin1' : 'utf8');
}

/**
 * @param {RegisteredMetric[]} metrics
 * @param {() => Setting} setting asked whenever a metric is read
 * @returns {Promise<Buffer>} the page as UTF-8
 */
async function scrapeBytes(metrics, setting) {
  const started = metrics.map(start);
  const { buffer, length } = await writeInSlices(started, setting, sampleCount(started));
  return Buffer.from(buffer, 0, length);
}

/**
 * @param {Started[]} started
 * @param {() => Setting} setting asked whenever a metric is read
 * @param {number} samples about how many there are
 */
async function writeInSlices(started, setting, samples) {
  const { openMetrics } = setting();
  const families = await all(started.map(each => read(each, setting, captureFamily)));
  // The capture of a thousand metrics is a slice of its own.
  if (samples > AT_ONCE_SAMPLES) await turn();
  const page = await runInSlices(renderBytes(families, openMetrics, LEAST_BYTES + samples * bytesPerSample));
  if (samples > AT_ONCE_SAMPLES) {
    const seen = ((page.length - LEAST_BYTES) / samples) * SPARE;
    bytesPerSample = Math.min(Math.max(bytesPerSample, seen), MOST_BYTES_PER_SAMPLE);
  }
  for (const { view } of started) if (view?.table.isSparse) await runInSlices(view.table.compactionSteps());
  return page;
}

/**
 * @param {RegisteredMetric} metric
 * @param {() => Setting} setting
 * @returns {string | Promise<string>} one metric, without a line feed at its end
 */
function scrapeOne(metric, setting) {
  return read(start(metric), setting, writeFamily);
}

/**
 * Starts what a metric needs before it can be read: its `collect` hook; of somebody's own metric, its get().
 *
 * @param {RegisteredMetric} metric
 * @returns {Started}
 */
function start(metric) {
  const view = viewOf(metric);
  return { metric, view, hook: startHook(metric, view !== undefined) };
}

/**
 * @param {RegisteredMetric} metric
 * @param {boolean} isOurs
 */
function startHook(metric, isOurs) {
  try {
    if (isOurs) return metric.collect ? metric.collect() : undefined;
    return typeof metric.getForPromString === 'function' ? metric.getForPromString() : metric.get();
  } catch (error) {
    // Other hooks are started nevertheless, as in prom-client; read() takes this one over.
    return Promise.reject(error);
  }
}

/**
 * @template T
 * @param {Started} started
 * @param {() => Setting} setting
 * @param {(family: MetricView | Family, setting: Setting) => T} make of what was read
 * @returns {T | Promise<T>} at once where nothing has to be waited for
 */
function read({ metric, view, hook }, setting, make) {
  /** @param {any} json of somebody's own metric */
  const now = json => {
    // A hook may change more of its metric than numbers.
    const current = metric.collect || view === undefined ? viewOf(metric) : view;
    if (current === undefined) return make(sampleFamily(json, setting().defaultLabels), setting());
    current.beforeRead?.();
    current.table.compactIfQuick();
    return make(current, setting());
  };
  if (isThenable(hook)) return Promise.resolve(hook).then(now);
  try {
    return now(hook);
  } catch (error) {
    // Not thrown: then nobody would wait for the hooks of the other metrics, and handle what these reject with.
    return Promise.reject(error);
  }
}

/**
 * @param {MetricView | Family} source
 * @param {Setting} setting
 * @returns {string}
 */
function writeFamily(source, { defaultLabels, openMetrics }) {
  const family = 'table' in source ? liveFamily(source, defaultLabels) : source;
  return [...renderFamily(family, openMetrics)].join('');
}

/**
 * @param {MetricView | Family} source
 * @param {Setting} setting
 * @returns {Family} as it is now
 */
function captureFamily(source, { defaultLabels }) {
  return 'table' in source ? capturedFamily(source, defaultLabels) : source;
}

/** @param {Started[]} started */
function sampleCount(started) {
  let count = 0;
  for (const { view } of started) {
    if (view !== undefined) count += view.table.liveCount * samplesPerSeries(view.layout);
  }
  return count;
}

/** @param {import('../exposition/text-format').Layout} layout */
function samplesPerSeries(layout) {
  if (layout.kind === 'histogram') return layout.bounds.length + 3;
  return layout.kind === 'summary' ? layout.quantiles.length + 2 : 1;
}

/**
 * @template T
 * @param {(T | Promise<T>)[]} results
 * @returns {T[] | Promise<T[]>} without a promise where there is none among them
 */
function all(results) {
  return results.some(isThenable) ? Promise.all(results) : /** @type {T[]} */ (results);
}

/**
 * @param {any} value
 * @returns {boolean}
 */
function isThenable(value) {
  return typeof value?.then === 'function';
}

module.exports = { scrapeText, scrapeBytes, scrapeOne };
