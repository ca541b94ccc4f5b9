'use strict';

const { debuglog, inspect } = require('util');
const { Registry, familiesOf } = require('../registry/registry');
const { checkLabelNamesAreValid } = require('../registry/names');
const { checkOptionNames } = require('../options/option-names');
const { warnOnce } = require('../options/warnings');
const { runInSlices } = require('../event-loop/slices');
const { OPENMETRICS_CONTENT_TYPE } = require('../exposition/content-type');

const debug = debuglog('prom-client-cluster');

const OPTIONS = new Set(['labels', 'headers', 'timeout', 'retries', 'protocol']);
const START_OPTIONS = new Set(['interval']);

const DEFAULT_TIMEOUT = 30_000;
const DEFAULT_RETRIES = 5;
const DEFAULT_INTERVAL = 15_000;
const MAX_TIMER = 2 ** 31 - 1; // a longer timer would fire at once

/** @typedef {import('./remote-write-session').PushResult} PushResult */
/** @typedef {import('./write-request').Protocol} Protocol */

/**
 * A push that has been captured.
 *
 * @typedef {object} WaitingPush
 * @property {() => Promise<void>} run
 * @property {(error: Error) => void} drop
 */

/**
 * Sends metrics to a receiver of Prometheus' remote write, for processes that cannot be scraped. One push is
 * under way at a time, and the newest one waits for it.
 */
class RemoteWrite {
  #session;
  #registry;
  #timeout;
  /** @type {Promise<unknown> | undefined} settles when the push under way has ended */
  #running = undefined;
  /** @type {WaitingPush | undefined} */
  #waiting = undefined;
  /** @type {NodeJS.Timeout | undefined} */
  #timer = undefined;

  /**
   * @param {string | URL} url of the receiver, http or https, optionally with `user:password@` for basic
   *   authentication
   * @param {object} options
   * @param {Record<string, string>} options.labels for all series that do not have a label of that name;
   *   `instance` is required, and `job` is usual
   * @param {Record<string, string>} [options.headers] such as `Authorization`
   * @param {number} [options.timeout] milliseconds for one attempt, default 30,000
   * @param {number} [options.retries] how often a request is sent again if the connection fails, or on status
   *   5xx or 429; default 5
   * @param {Protocol} [options.protocol] version of the protocol, default 2.0 or, if the receiver does not
   *   have it, 1.0
   * @param {Registry} [registry] default the global registry; not an AggregatorRegistry or WorkerRegistry
   * @throws {TypeError} if an argument is not valid
   */
  constructor(url, options, registry = Registry.globalRegistry) {
    checkOptionNames('RemoteWrite', options, OPTIONS);
    const {
      labels,
      headers = {},
      timeout = DEFAULT_TIMEOUT,
      retries = DEFAULT_RETRIES,
      protocol,
    } = options ?? {};
    checkMilliseconds('timeout', timeout);
    if (!Number.isInteger(retries) || retries < 0)
      throw new TypeError(`retries must be a whole number: ${inspect(retries)}`);
    if (protocol !== undefined && protocol !== '1.0' && protocol !== '2.0')
      throw new TypeError(`protocol must be '1.0' or '2.0': ${inspect(protocol)}`);
    if (typeof registry?.getMetricsAsArray !== 'function')
      throw new TypeError(`Expected Registry, got ${typeof registry}`);
    if ('clusterMetricsBytes' in registry)
      throw new TypeError(
        'RemoteWrite expected a Registry: it does not push the page of a cluster or of threads',
      );
    const settings = {
      url: checkedUrl(url),
      labels: checkedLabels(labels),
      headers: checkedHeaders(headers),
    };
    // Loaded on first use: few programs need it.
    const { RemoteWriteSession } = require('./remote-write-session');
    this.#session = new RemoteWriteSession({ ...settings, timeout, retries, protocol });
    this.#registry = registry;
    this.#timeout = timeout;
  }

  /**
   * Sends all metrics once.
   *
   * @returns {Promise<PushResult>} when the receiver has accepted them
   * @throws {Error} if it does not, if a `collect` hook fails, or if a newer push has replaced this one
   */
  push() {
    return whileAlive(this.#push());
  }

  /**
   * Pushes at an interval, from now on. A push that fails is counted, and the first failure is reported as a
   * process warning. The timer does not keep the process alive.
   *
   * @param {{interval?: number}} [options] milliseconds, default 15,000
   * @throws {TypeError} if it is not a number of milliseconds
   */
  start(options = {}) {
    checkOptionNames('start()', options, START_OPTIONS);
    const { interval = DEFAULT_INTERVAL } = options;
    checkMilliseconds('interval', interval);
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#pushInBackground(), interval).unref();
    this.#pushInBackground();
  }

  /**
   * Ends start(): pushes once more, and then marks all series as ended, so that queries do not show them any
   * longer.
   *
   * @returns {Promise<void>} never rejects
   */
  async stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    const pushed = this.#push().then(() => this.#enqueue(async () => this.#session.buildEnd()));
    await whileAlive(pushed.catch(reportFailure));
  }

  #pushInBackground() {
    this.#push().catch(reportFailure);
  }

  /** @returns {Promise<PushResult>} */
  #push() {
    const session = this.#session;
    const openMetrics = this.#registry.contentType === OPENMETRICS_CONTENT_TYPE;
    const timestamp = session.nextTimestamp();
    // In this turn: a program may reset its metrics right after calling push().
    const captured = within(this.#timeout, familiesOf([this.#registry]));
    // A push that is replaced before it is built does not read it.
    captured.catch(() => {});
    return this.#enqueue(async () => session.build(await captured, openMetrics, timestamp));
  }

  /**
   * @param {() => Promise<Generator<void, import('./written-series').Push>>} build
   * @returns {Promise<PushResult>}
   */
  #enqueue(build) {
    return new Promise((resolve, reject) => {
      this.#waiting?.drop(new Error('The push was replaced by a newer one.'));
      this.#waiting = {
        run: () => this.#run(build).then(resolve, reject),
        drop: error => {
          this.#session.countDropped();
          reject(error);
        },
      };
      this.#session.supersede(true);
      this.#runNext();
    });
  }

  /**
   * @param {() => Promise<Generator<void, import('./written-series').Push>>} build
   * @returns {Promise<PushResult>}
   */
  async #run(build) {
    let push;
    try {
      push = await runInSlices(await build());
    } catch (error) {
      this.#session.countFailed();
      throw error;
    }
    return this.#session.deliver(push);
  }

  #runNext() {
    const next = this.#waiting;
    if (this.#running !== undefined || next === undefined) return;
    this.#waiting = undefined;
    this.#session.supersede(false);
    this.#running = next.run().finally(() => {
      this.#running = undefined;
      this.#runNext();
    });
  }
}

/**
 * Keeps the process alive until a promise settles: sockets and timers of a push do not.
 *
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
function whileAlive(promise) {
  const timer = setInterval(() => {}, MAX_TIMER);
  return promise.finally(() => clearInterval(timer));
}

/**
 * @template T
 * @param {number} milliseconds
 * @param {Promise<T>} captured
 * @returns {Promise<T>} rejects if a `collect` hook takes longer: later pushes wait for this one
 */
function within(milliseconds, captured) {
  return new Promise((resolve, reject) => {
    const error = new Error(`the collect hooks have not ended within ${milliseconds} ms`);
    const timer = setTimeout(() => reject(error), milliseconds).unref();
    captured.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** @param {unknown} error */
function reportFailure(error) {
  const { message } = /** @type {Error} */ (error);
  debug('remote write: %s', message);
  warnOnce('remote write', `Remote write has failed: ${message}. It is tried again, without another warning`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @throws {TypeError}
 */
function checkMilliseconds(name, value) {
  if (typeof value === 'number' && value >= 1 && value <= MAX_TIMER) return;
  throw new TypeError(`${name} must be a number of milliseconds: ${inspect(value)}`);
}

/**
 * @param {unknown} url
 * @returns {string}
 * @throws {TypeError}
 */
function checkedUrl(url) {
  const text = String(url);
  // The text is not shown: it may contain a password.
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new TypeError('RemoteWrite expected the URL of a receiver, http: or https:');
  return text;
}

/**
 * @param {any} labels
 * @returns {Record<string, string>}
 * @throws {TypeError} if there is no `instance`
 * @throws {Error} if a name is not valid
 */
function checkedLabels(labels) {
  if (typeof labels?.instance !== 'string' || labels.instance === '') {
    throw new TypeError(
      'RemoteWrite needs labels.instance: series of several processes that have no label to tell them apart overwrite each other',
    );
  }
  checkLabelNamesAreValid(Object.keys(labels));
  if (Object.hasOwn(labels, '__name__')) throw new TypeError('labels must not have a __name__');
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]) => [name, String(value).toWellFormed()]),
  );
}

/**
 * @param {Record<string, unknown>} headers
 * @returns {Record<string, string>}
 * @throws {TypeError} if a name or value is not valid
 */
function checkedHeaders(headers) {
  const { validateHeaderName, validateHeaderValue } = require('http');
  const entries = Object.entries(headers).map(
    ([name, value]) => /** @type {[string, string]} */ ([name, String(value)]),
  );
  for (const [name, value] of entries) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  return Object.fromEntries(entries);
}

module.exports = { RemoteWrite };
