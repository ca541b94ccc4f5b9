'use strict';

const { Registry } = require('../../registry/registry');
const { Pusher } = require('../pusher');
const { sessionSettings } = require('./remote-write-options');

const DEFAULT_INTERVAL = 15_000;

/** @typedef {import('./write-request').Protocol} Protocol */

/** @type {import('../push-senders').PushFormat} */
const REMOTE_WRITE = {
  name: 'remote-write',
  title: 'Remote write',
  createSession: settings => {
    // Loaded on first use: few programs need it, and the primary of a cluster does not.
    const { RemoteWriteSession } = require('./remote-write-session');
    return new RemoteWriteSession(/** @type {any} */ (settings));
  },
};

/** Sends metrics to a receiver of Prometheus' remote write, for processes that cannot be scraped. */
class RemoteWrite extends Pusher {
  /**
   * @param {string | URL} url of the receiver, http or https, optionally with `user:password@` for basic
   *   authentication
   * @param {object} options
   * @param {Record<string, string>} options.labels for all series that do not have a label of that name;
   *   `instance` is required, and `job` is usual
   * @param {Record<string, string>} [options.headers] such as `Authorization`
   * @param {number} [options.timeout] milliseconds for one attempt, default 30,000
   * @param {number} [options.interval] milliseconds between the pushes of start(), default 15,000
   * @param {number} [options.retries] how often a request is sent again if the connection fails, or on status
   *   5xx or 429; default 5
   * @param {Protocol} [options.protocol] version of the protocol, default 2.0 or, if the receiver does not
   *   have it, 1.0
   * @param {boolean} [options.nativeHistograms] whether to send native histograms as such, default false
   * @param {Registry} [registry] default the global registry. The metrics of an AggregatorRegistry or
   *   WorkerRegistry are pushed by its aggregator
   * @throws {TypeError} if an argument is not valid
   */
  constructor(url, options, registry = Registry.globalRegistry) {
    const settings = sessionSettings(url, options);
    const { interval = DEFAULT_INTERVAL } = /** @type {any} */ (options);
    super(REMOTE_WRITE, settings, interval, registry);
  }
}

module.exports = { RemoteWrite };
