'use strict';

// One scrape of a registry: starts the `collect` hooks, reads the metrics, renders them. Metrics without an
// asynchronous hook are read in the turn of the call, because a program may reset them right after it. A
// small page is rendered at once. For a large page only the numbers are copied at once (0.2 ms for 100,000 of
// them); it is rendered in slices, so the application can use the event loop in between.

const { samplesOf } = require('../series/layouts');
const { scrapeStarts, runHook } = require('../series/hook-recordings');
const { renderBytes } = require('../exposition/text-bytes');
const { selectFamilies } = require('../exposition/page-format');
const { pageText } = require('../exposition/page-bytes');
const { compress } = require('../exposition/gzip');
const { runInSlices, turn } = require('../event-loop/slices');
const { liveFamily, capturedFamily } = require('../exposition/live-family');
const { sampleFamily } = require('../exposition/sample-family');
const { TEXT, formatOf } = require('../exposition/formats');
const { viewOf, DEFAULT_LABELS, FAMILY, PAGES } = require('./metric-view');
const { withDefaultLabels } = require('./json-defaults');
const { readableDefaults } = require('./readable-defaults');
const { warnOfOtherClients } = require('./other-clients');

// Up to here a page is rendered at once, in about 2 ms, and without a copy of the numbers: 100 metrics take
// 140 µs so, 260 µs if they are copied and written in slices, and 160 µs in prom-client.
const AT_ONCE_SAMPLES = 4096;

// The memory that a page starts with. Later pages start with what the longest page has needed, because a page
// that outgrows its memory is copied in one step, at each scrape (6 ms for 12 MB). More is not better: V8
// counts it as external memory and collects garbage for it (100,000 samples: longest gap 3 ms with 160 bytes,
// 6 ms with 256).
let bytesPerSample = 160;
const MOST_BYTES_PER_SAMPLE = 512;

// The next page may be longer, because numbers become longer.
const HEADROOM = 1.1;

// Additional bytes for custom metric objects, whose samples are not counted.
const LEAST_BYTES = 1 << 18;

// A hook may scrape a registry whose hooks scrape others.
const MAX_DEPTH = 100;
const TOO_DEEP = `${MAX_DEPTH} collect hooks scrape within each other: one may scrape its own registry`;
let depth = 0;

/** @typedef {import('./registry').RegisteredMetric} RegisteredMetric */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {import('../exposition/page-format').PageFormat} PageFormat */

/**
 * What applies to all metrics of a registry.
 *
 * @typedef {object} Setting
 * @property {Record<string, unknown>} defaultLabels
 * @property {Format} format
 */

/**
 * A metric whose `collect` hook has been started.
 *
 * @typedef {object} Started
 * @property {RegisteredMetric} metric
 * @property {any} registry whose setting applies when the metric is read
 * @property {MetricView | undefined} view undefined for a custom metric object
 * @property {any} hook a promise if it is asynchronous; for a custom metric object, its JSON
 */

/**
 * @param {any} registry
 * @returns {Promise<string>} the page
 */
async function scrapeText(registry) {
  const { format } = settingOf(registry);
  const started = startAll([registry]);
  const samples = sampleCount(started);
  if (samples <= AT_ONCE_SAMPLES && !format.isBinary) {
    const texts = await all(started.map(each => read(each, writeFamily)));
    await compact(started);
    return joinFamilies(texts, format);
  }
  const [{ buffer, length }] = await writeInSlices(started, [{ format: format.name }]);
  await turn();
  // Not concatenated from pieces: V8 would defer the copying to one long pause at the end.
  return pageText(Buffer.from(buffer, 0, length), format);
}

/**
 * @param {string[]} texts of families
 * @param {Format} format
 * @returns {string} the page
 */
function joinFamilies(texts, { separator, ending }) {
  return texts.join(separator) + ending;
}

/**
 * @param {any[]} registries without two metrics of the same name
 * @param {PageFormat[]} formats
 * @returns {Promise<Buffer[]>} for each format a page of all registries
 */
async function scrapePages(registries, formats) {
  const bodies = await writeInSlices(startAll(registries), formats);
  return Promise.all(
    bodies.map(({ buffer, length }, i) => {
      const page = Buffer.from(buffer, 0, length);
      return formats[i].gzip ? compress(page) : page;
    }),
  );
}

/**
 * @param {any} registry possibly of another copy of this package, or of the application
 * @param {PageFormat[]} formats
 * @returns {Promise<Buffer[]>} a page for each; of the same text if the registry has a rendering of its own
 */
async function pagesOf(registry, formats) {
  const pages = registry[PAGES];
  if (pages !== undefined) return pages(formats);
  const page = Buffer.from(await registry.metrics());
  return Promise.all(formats.map(({ gzip }) => (gzip ? compress(page) : page)));
}

/**
 * The families of a page, for protocols that are not text. What cannot be read is left out.
 *
 * @param {any[]} registries without two metrics of the same name
 * @param {object} options
 * @param {Promise<never>} options.deadline rejected when no hook is waited for any longer
 * @param {(metric: RegisteredMetric, error: unknown) => void} options.onFailure called for each metric that
 *   cannot be read
 * @param {(error: unknown, name: string) => void} options.onUnreadableLabel called for default labels
 *   that cannot be read
 * @returns {Promise<Family[]>} with the numbers of this call
 */
async function scrapeFamilies(registries, { deadline, onFailure, onUnreadableLabel }) {
  const started = startAll(registries);
  const readableSettingOf = (/** @type {any} */ registry) => ({
    ...settingOf(registry),
    defaultLabels: readableDefaults(registry, onUnreadableLabel, true),
  });
  const families = await Promise.all(
    started.map(each =>
      Promise.race([read(each, captureFamily, readableSettingOf), deadline]).catch(error =>
        onFailure(each.metric, error),
      ),
    ),
  );
  await compact(started);
  return families.flatMap(family => family ?? []);
}

/**
 * @param {Started[]} started
 * @param {Omit<PageFormat, 'gzip'>[]} formats
 * @returns {Promise<import('../exposition/page').Body[]>} a page for each format
 */
async function writeInSlices(started, formats) {
  const samples = sampleCount(started);
  const families = await all(started.map(each => read(each, captureFamily)));
  // Capturing a thousand metrics fills a slice.
  if (samples > AT_ONCE_SAMPLES) await turn();
  const bodies = [];
  try {
    for (const { format: name, names } of formats) {
      const expected = names === undefined ? samples : 0;
      const shown = selectFamilies(families, names);
      const bytes = LEAST_BYTES + expected * bytesPerSample;
      const body = await runInSlices(renderBytes(shown, formatOf(name), bytes));
      if (expected > AT_ONCE_SAMPLES) {
        const seen = ((body.length - LEAST_BYTES) / samples) * HEADROOM;
        bytesPerSample = Math.min(Math.max(bytesPerSample, seen), MOST_BYTES_PER_SAMPLE);
      }
      bodies.push(body);
    }
  } finally {
    for (const family of families) family.end?.();
  }
  await compact(started);
  return bodies;
}

/**
 * Compacts tables of which most rows were removed.
 *
 * @param {Started[]} started
 */
async function compact(started) {
  for (const { view } of started) if (view?.table.isSparse) await runInSlices(view.table.compactionSteps());
}

/**
 * @param {RegisteredMetric} metric
 * @param {any} registry whose setting applies
 * @returns {string | Promise<string>} one metric, without a line feed at its end
 */
function scrapeOne(metric, registry) {
  return read(start(metric, registry), writeFamily);
}

/**
 * @param {any[]} registries possibly of other copies of this package
 * @returns {Started[]} all of their metrics
 */
function startAll(registries) {
  warnOfOtherClients(registries);
  // Listed first: a hook may register metrics.
  const listed = registries.map(registry => registry.getMetricsAsArray());
  /** @type {Started[]} */
  const started = [];
  // With flatMap() a page of 100 metrics takes 4 % longer.
  listed.forEach((metrics, i) => {
    for (const metric of metrics) started.push(start(metric, registries[i]));
  });
  return started;
}

/**
 * @param {any} registry
 * @returns {Setting}
 */
function settingOf(registry) {
  return { defaultLabels: registry[DEFAULT_LABELS] ?? {}, format: formatOf(registry.contentType) };
}

/**
 * Starts the `collect` hook of a metric, or get() of a custom metric object.
 *
 * @param {RegisteredMetric} metric
 * @param {any} registry
 * @returns {Started}
 */
function start(metric, registry) {
  /** @type {Started} */
  const started = { metric, registry, view: undefined, hook: undefined };
  depth++;
  try {
    // The stack would overflow between two hooks, and the rejection of one would remain unhandled.
    if (depth > MAX_DEPTH) throw new RangeError(TOO_DEEP);
    started.view = viewOf(metric);
    scrapeStarts(metric);
    if (started.view !== undefined) started.hook = metric.collect && runHook(() => metric.collect?.());
    else if (typeof metric.getForPromString === 'function') started.hook = metric.getForPromString();
    else started.hook = metric.get();
  } catch (error) {
    // The other hooks still start, as in prom-client. read() handles this rejection.
    started.hook = Promise.reject(error);
  } finally {
    depth--;
  }
  return started;
}

/**
 * @template T
 * @param {Started} started
 * @param {(family: MetricView | Family, setting: Setting) => T} make creates the result from the family
 * @param {(registry: any) => Setting} [settingFor]
 * @returns {T | Promise<T>} no promise if there is nothing to wait for
 */
function read({ metric, registry, view, hook }, make, settingFor = settingOf) {
  /** @param {any} json of a custom metric object */
  const now = json => {
    const setting = settingFor(registry);
    // A hook may change more of its metric than numbers.
    const current = metric.collect || view === undefined ? (viewOf(metric) ?? view) : view;
    if (current === undefined) return make(customFamily(metric, json, setting.defaultLabels), setting);
    current.beforeRead?.();
    return make(current, setting);
  };
  try {
    return isThenable(hook) ? Promise.resolve(hook).then(now) : now(hook);
  } catch (error) {
    // Throwing would leave rejections of the other hooks unhandled.
    return Promise.reject(error);
  }
}

/**
 * @param {any} metric a custom metric object
 * @param {any} json
 * @param {Record<string, unknown>} defaultLabels
 * @returns {Family}
 */
function customFamily(metric, json, defaultLabels) {
  return metric[FAMILY]?.(withDefaultLabels(json, defaultLabels)) ?? sampleFamily(json, defaultLabels);
}

/**
 * @param {MetricView | Family} source
 * @param {Setting} setting
 * @returns {string} Prometheus text if the format is not text
 */
function writeFamily(source, { defaultLabels, format }) {
  const family = 'table' in source ? liveFamily(source, defaultLabels) : source;
  return [...(format.isBinary ? TEXT : format).write(family)].join('');
}

/**
 * @param {MetricView | Family} source
 * @param {Setting} setting
 * @returns {Family} a copy of the current numbers
 */
function captureFamily(source, { defaultLabels }) {
  return 'table' in source ? capturedFamily(source, defaultLabels) : source;
}

/** @param {Started[]} started */
function sampleCount(started) {
  let count = 0;
  for (const { view } of started) {
    if (view !== undefined) count += view.table.liveCount * samplesOf(view.layout).length;
  }
  return count;
}

/**
 * @template T
 * @param {(T | Promise<T>)[]} results
 * @returns {T[] | Promise<T[]>} a promise only if one of the results is one
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

module.exports = { scrapeText, scrapePages, pagesOf, scrapeFamilies, scrapeOne, joinFamilies };
