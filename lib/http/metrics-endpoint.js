'use strict';

// The part that the endpoints of all frameworks share: checks the options, and produces the response of a
// scrape.

const { inspect } = require('node:util');
const { unref } = require('../event-loop/timers');

const { checkOptionNames } = require('../options/option-names');
const { PAGES, REGISTRY_STATE, hasNativeHistograms } = require('../registry/metric-view');
const { offeredTypes } = require('../registry/registry');
const { UNAVAILABLE, unavailable, reasonOf } = require('../registry/unavailable');
const { coalesceByRegistry } = require('../registry/coalesce');
const { pagesOf } = require('../registry/scrape');
const { PROTOBUF, formatOf } = require('../exposition/formats');
const { FACTS } = require('../exposition/page-bytes');
const { acceptsGzip, chooseContentType, namesOf, waitOf } = require('./negotiation');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');
const { invalidOption } = require('../options/coded-error');

// Limits warnings, because a scrape that fails is repeated at each interval.
const WARNING_PAUSE_MILLISECONDS = 60_000;

// A `collect` hook that fails usually fails at each scrape.
const HOOK_PAUSE_MILLISECONDS = 600_000;

const HOOK_CODE = 'PROM_CLIENT_CLUSTER_COLLECT';
const MOST_NAMES = 10;

/** Names of the options of every endpoint. */
const OPTION_NAMES = new Set(['selfMetrics', 'formats', 'onError']);

let isQuiet = false;

/** The page of a registry, which concurrent requests share. */
const pageOf = coalesceByRegistry(pagesOf);

/**
 * @typedef {object} EndpointOptions
 * @property {boolean} [selfMetrics] whether a cluster's page includes metrics about the scrape itself
 *   (workers by state, age of their numbers, failures), default true
 * @property {readonly string[]} [formats] of `text`, `openmetrics` and `protobuf`: the request's Accept
 *   header chooses one of them, or else the first is used. Default: those of the registry's setFormats(), or
 *   else its content type, and `protobuf` if it has native histograms
 * @property {(error: any) => unknown} [onError] called if a scrape fails, and if the page of a cluster,
 *   group or threads shows old values because `collect` hooks have failed: once in ten minutes for a metric.
 *   Default for a scrape: a process warning, at most one a minute
 */

/**
 * A request as an endpoint reads it.
 *
 * @typedef {object} ScrapeRequest
 * @property {(name: string) => import('./negotiation').Header} header by its name in lower case
 * @property {string | undefined} url
 */

/**
 * @typedef {object} ScrapeResponse
 * @property {number} status
 * @property {Record<string, string | number>} headers
 * @property {string[]} vary names of the request's headers on which the body depends
 * @property {Buffer} body
 */

/** One way to serve a registry. */
class MetricsEndpoint {
  #registry;
  #selfMetrics;
  /** @type {string[] | undefined} */
  #contentTypes;
  #onError;
  /** @type {Map<string, {count: number, reportedAt: number}> | undefined} by metric, with an onError */
  #hooks;

  /**
   * @param {any} registry Registry or AggregatorRegistry
   * @param {EndpointOptions | null | undefined} options
   * @param {string} caller the public function, for errors
   * @throws {TypeError} if `registry` is not a registry, or an option is not valid
   */
  constructor(registry, options, caller) {
    if (typeof registry?.metrics !== 'function') throw invalidOption(`${caller} expected a Registry`);
    checkOptionNames(`${caller}()`, options, OPTION_NAMES);
    const { selfMetrics, formats, onError } = options ?? {};
    if (onError != null && typeof onError !== 'function') {
      throw invalidOption(`onError must be a function: ${inspect(onError)}`);
    }
    this.#registry = registry;
    this.#selfMetrics = selfMetrics ?? true;
    this.#contentTypes = formats == null ? undefined : offeredTypes(formats);
    this.#onError = onError ?? warn;
    // Without onError, the warning of the process whose hook has failed is enough.
    this.#hooks = onError == null ? undefined : new Map();
  }

  /**
   * @param {ScrapeRequest} request
   * @returns {Promise<ScrapeResponse>} never rejected; a failure is reported
   */
  async respond(request) {
    try {
      return await this.#metrics(request);
    } catch (error) {
      this.report(error);
      const reason = reasonOf(error);
      const body = Buffer.from(`${reason ?? 'Metrics are not available.'}\n`);
      return responseOf(reason === undefined ? 500 : 503, 'text/plain; charset=utf-8', [], body);
    }
  }

  /** @param {unknown} error with which a scrape failed */
  async report(error) {
    debug('a scrape failed: %s', error);
    try {
      await this.#onError(error);
    } catch (failure) {
      debug('onError failed: %s', failure);
    }
  }

  /**
   * Reports `collect` hooks that have failed since the page before.
   *
   * @param {import('../exposition/page-bytes').HookFailures} [failures] of all processes so far
   */
  #reportHooks(failures = []) {
    const reported = this.#hooks;
    if (reported === undefined) return;
    const now = performance.now();
    const names = [];
    for (const [name, count] of failures) {
      const last = reported.get(name) ?? { count: 0, reportedAt: -Infinity };
      const isDue = count > last.count && now - last.reportedAt >= HOOK_PAUSE_MILLISECONDS;
      if (isDue) names.push(name);
      reported.set(name, { count, reportedAt: isDue ? now : last.reportedAt });
    }
    if (names.length === 0) return;
    // Not by who answered first.
    names.sort();
    const list = names.length > MOST_NAMES ? [...names.slice(0, MOST_NAMES), '…'] : names;
    const text = `The page shows old values because collect hooks have failed: ${list.join(', ')}`;
    void this.report(Object.assign(new Error(text), { code: HOOK_CODE }));
  }

  /**
   * @param {ScrapeRequest} request
   * @returns {Promise<ScrapeResponse>}
   */
  async #metrics({ header, url }) {
    const registry = this.#registry;
    const gzip = acceptsGzip(header('accept-encoding'));
    const names = namesOf(url);
    const accept = header('accept');
    if (typeof registry.clusterMetricsBytes !== 'function') {
      const isOurs = registry[PAGES] !== undefined;
      const { chosen, vary } = this.#choose(accept, isOurs && hasNativeHistograms(registry));
      // A registry with a rendering of its own writes one format only.
      const contentType = isOurs ? chosen : registry.contentType;
      const body = await pageOf(registry, { format: formatOf(contentType).name, gzip, names });
      if (registry.getMetricsAsArray?.().length === 0) {
        throw unavailable('There are no metrics: none is registered in this Registry.');
      }
      return responseOf(200, contentType, vary, body, { gzip });
    }
    const [classic, native] = [this.#choose(accept, false), this.#choose(accept, true)];
    const page = await registry.clusterMetricsBytes({
      gzip,
      timeout: waitOf(header('x-prometheus-scrape-timeout-seconds'), registry.timeout ?? 0),
      selfMetrics: this.#selfMetrics,
      contentType: classic.chosen,
      nativeContentType: native.chosen,
      names,
    });
    const { isNothing, hookFailures, hasNative } = page[FACTS] ?? {};
    if (isNothing) throw unavailable(registry[UNAVAILABLE] ?? 'There are no metrics.');
    this.#reportHooks(hookFailures);
    const { chosen, vary } = hasNative ? native : classic;
    return responseOf(200, chosen, vary, page, { gzip });
  }

  /**
   * Without formats that were set, native histograms are served to those that ask for them.
   *
   * @param {import('./negotiation').Header} accept
   * @param {boolean} hasNative whether the page has native histograms
   */
  #choose(accept, hasNative) {
    const registry = this.#registry;
    const own = hasNative ? [registry.contentType, PROTOBUF.contentType] : [registry.contentType];
    const contentTypes = this.#contentTypes ?? registry[REGISTRY_STATE]?.contentTypes ?? own;
    const vary = contentTypes.length === 1 ? ['Accept-Encoding'] : ['Accept', 'Accept-Encoding'];
    return { chosen: chooseContentType(accept, contentTypes), vary };
  }
}

/**
 * @param {number} status
 * @param {string} contentType
 * @param {string[]} vary
 * @param {Buffer} body
 * @param {{gzip?: boolean}} [options] `gzip`: whether the body is compressed
 * @returns {ScrapeResponse}
 */
function responseOf(status, contentType, vary, body, { gzip = false } = {}) {
  /** @type {ScrapeResponse['headers']} */
  const headers = { 'Content-Type': contentType, 'Content-Length': body.length };
  if (gzip) headers['Content-Encoding'] = 'gzip';
  return { status, headers, vary, body };
}

/** @param {unknown} error */
function warn(error) {
  if (isQuiet) return;
  isQuiet = true;
  unref(setTimeout(() => (isQuiet = false), WARNING_PAUSE_MILLISECONDS));
  const [line] = (reasonOf(error) ?? textOf(error)).split('\n');
  process.emitWarning(`A scrape of the metrics failed: ${line}`, { code: 'PROM_CLIENT_CLUSTER_SCRAPE' });
}

module.exports = { MetricsEndpoint, OPTION_NAMES };
