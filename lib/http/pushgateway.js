'use strict';

const { Registry } = require('../registry/registry');
const { checkOptionNames } = require('../options/option-names');
const { compress } = require('../exposition/gzip');
const { codedError, invalidOption } = require('../options/coded-error');

// http, https and url are loaded on first use, so runtimes without them can load the library. Their
// names have no 'node:' prefix, because applications mock them: some test tools take 'http' and 'node:http'
// for two modules.

const BASE64 = '@base64';

/** Options that may be misspelt. All others of http.request() are passed on, too. */
const OPTIONS = new Set([
  'requireJobName',
  ...['timeout', 'headers', 'auth', 'agent', 'hostname', 'protocol', 'rejectUnauthorized'],
]);

/**
 * Label values that cannot be a path segment. The gateway decodes the path before it splits it and resolves
 * dot segments: `a/b` would become two segments, and `..` would address another group.
 */
const UNFIT_FOR_PATH = /^$|^\.\.?$|\//;

// A Pushgateway's response has a few lines. Another server's may be endless.
const MAX_RESPONSE_CHARACTERS = 2 ** 24;

/**
 * What a Pushgateway pushes: a Registry or a custom object. If it has `clusterMetricsBytes()`, as an
 * AggregatorRegistry does, the metrics of the cluster are pushed.
 *
 * @typedef {object} PushedRegistry
 * @property {() => string | Promise<string>} metrics
 * @property {string} [contentType]
 * @property {(options: {gzip: boolean}) => Promise<Buffer> | undefined} [clusterMetricsBytes] undefined of a
 *   stub
 */

/**
 * Options of http.request(), which override the parts of the gateway's URL; `method` is ignored. `timeout` is
 * in milliseconds. With the header `Content-Encoding: gzip`, in exactly this spelling, bodies are compressed.
 *
 * @typedef {import('node:https').RequestOptions & {requireJobName?: boolean}} PushgatewayOptions
 *   `requireJobName`, default true: a push without a jobName throws
 */

/**
 * The group of series that a push replaces or a delete removes.
 *
 * @typedef {object} PushParameters
 * @property {string} [jobName]
 * @property {Record<string, string>} [groupings] additional labels of the group, ignored without a jobName
 */

/**
 * @typedef {{resp: import('node:http').IncomingMessage, body: string}} PushResult the gateway's response,
 *   read completely
 */

/**
 * Pushes metrics to a Prometheus Pushgateway, for jobs that end before they can be scraped.
 *
 * All three operations reject with the error of the socket, with `Error: Pushgateway request timed out` if
 * the connection was idle for the option `timeout`, and with `Error: push failed with status …` if the
 * gateway responds with status 400 or above or with more than 16 MiB. Redirects are not followed: they
 * resolve like any other response.
 */
class Pushgateway {
  /**
   * @param {string} gatewayUrl http or https, optionally with `user:password@` for basic authentication and
   *   with a path; a query is ignored
   * @param {PushgatewayOptions | PushedRegistry | null} [options] or the registry, if there are no options
   * @param {PushedRegistry | null} [registry] what to push, default the global registry. An
   *   AggregatorRegistry pushes the metrics of its cluster, or its own if there never was a worker
   */
  constructor(gatewayUrl, options, registry) {
    const secondIsRegistry = typeof (/** @type {any} */ (options)?.metrics) === 'function';
    if (!secondIsRegistry) checkOptionNames('Pushgateway', options, OPTIONS);
    const { requireJobName, ...requestOptions } = {
      requireJobName: true,
      .../** @type {PushgatewayOptions} */ (secondIsRegistry ? undefined : options),
    };
    /** @type {PushedRegistry} */
    this.registry = registry ?? /** @type {any} */ (secondIsRegistry ? options : Registry.globalRegistry);
    this.gatewayUrl = gatewayUrl;
    this.requireJobName = requireJobName;
    this.requestOptions = requestOptions;
  }

  /**
   * Replaces the metrics of the group whose names are among the pushed ones (POST).
   *
   * @param {PushParameters} [params]
   * @returns {Promise<PushResult>}
   * @throws {Error} synchronously, if a required jobName is missing
   */
  pushAdd(params = {}) {
    return exchange(this, 'POST', params);
  }

  /**
   * Replaces all metrics of the group (PUT).
   *
   * @param {PushParameters} [params]
   * @returns {Promise<PushResult>}
   * @throws {Error} synchronously, if a required jobName is missing
   */
  push(params = {}) {
    return exchange(this, 'PUT', params);
  }

  /**
   * Removes the group (DELETE).
   *
   * @param {PushParameters} [params]
   * @returns {Promise<PushResult>}
   * @throws {Error} synchronously, if a required jobName is missing
   */
  delete(params = {}) {
    return exchange(this, 'DELETE', params);
  }
}

/**
 * Opens the request before the metrics are collected, as prom-client does: tests of applications inspect it
 * as soon as push() has returned, and the timeout covers the `collect` hooks.
 *
 * @param {Pushgateway} gateway
 * @param {'POST' | 'PUT' | 'DELETE'} method
 * @param {PushParameters} params
 * @returns {Promise<PushResult>}
 * @throws {Error} synchronously, if a required jobName is missing
 */
function exchange({ gatewayUrl, requestOptions, registry, requireJobName }, method, params) {
  if (!params.jobName && requireJobName) throw invalidOption('Missing jobName parameter', Error);
  return new Promise((resolve, reject) => {
    const target = requestTarget(gatewayUrl, params);
    const transport = target.protocol === 'https:' ? require('https') : require('http');
    /** @type {any} */
    const options = { ...target, ...requestOptions, method };
    const isDelete = method === 'DELETE';
    if (isDelete && options.headers?.['Content-Encoding'] !== undefined) {
      // A copy, because the caller owns the original. The request has no body.
      options.headers = { ...options.headers };
      delete options.headers['Content-Encoding'];
    }

    const request = transport.request(options, response => readAnswer(response, resolve, reject));
    /** @param {unknown} error */
    const fail = error => {
      reject(error);
      // A mock of a request may not have it.
      request.destroy?.();
    };
    request.on('error', reject);
    // Nobody reads such a response.
    request.on('upgrade', () => fail(new Error('push failed, the gateway upgrades the connection')));
    request.on('timeout', () => fail(codedError('TIMEOUT', Error, 'Pushgateway request timed out')));
    const { headers } = /** @type {any} */ (requestOptions);
    if (isDelete) request.end();
    else sendMetrics(request, registry, headers?.['Content-Encoding'] === 'gzip').catch(fail);
  });
}

/**
 * @param {string} gatewayUrl its query is ignored
 * @param {PushParameters} params
 * @returns {import('node:http').RequestOptions & Record<string, any>} also what prom-client passes besides
 * @throws {TypeError} with code ERR_INVALID_ARG_TYPE or ERR_INVALID_URL
 * @throws {URIError} if the credentials contain an invalid escape
 */
function requestTarget(gatewayUrl, params) {
  const { URL, Url, urlToHttpOptions } = /** @type {any} */ (require('url'));
  // Node.js has the error for what is not a string, as prom-client throws it.
  if (typeof gatewayUrl !== 'string') new Url().parse(gatewayUrl);
  const [, scheme] = /^\s*([^/?#]*?:)/.exec(gatewayUrl) ?? [];
  // `localhost:9091` has the scheme `localhost:`. http.request() rejects all but `http:` and `https:`.
  if (scheme !== undefined && !/^https?:$/i.test(scheme)) return { protocol: scheme };
  const url = new URL(gatewayUrl);
  const { protocol, hostname, auth = null } = urlToHttpOptions(url);
  // prom-client escapes apostrophes too; `URL` and encodeURIComponent() do not.
  const path = `${url.pathname.replace(/\/+$/, '')}/metrics${groupPath(params)}`.replaceAll("'", '%27');
  const credentials = auth === null ? '' : `${encodeURIComponent(auth).replace('%3A', ':')}@`;
  const href = `${protocol}//${credentials}${url.host}${path}`;
  const parts = { protocol, auth, host: url.host, hostname, port: url.port || null, pathname: path, path };
  // http.request() reads none of these, but tests of applications compare all of the options.
  return { ...parts, href, slashes: true, hash: null, search: null, query: null };
}

/**
 * @param {PushParameters} params
 * @returns {string} empty if there is no job
 */
function groupPath({ jobName, groupings }) {
  if (!jobName) return '';
  const labels = [['job', jobName], ...Object.entries(groupings ?? {})];
  return labels.map(([name, value]) => labelPath(name, value)).join('');
}

/**
 * One label of the group: `/name/value`, or `/name@base64/value` in the URL-safe alphabet, where a single `=`
 * is the empty value. https://github.com/prometheus/pushgateway#url
 *
 * @param {string} name may end in `@base64` if the caller has encoded the value
 * @param {unknown} value
 * @returns {string}
 * @throws {URIError} if it contains a lone surrogate
 */
function labelPath(name, value) {
  const text = `${value}`;
  const encodedName = encodeURIComponent(name);
  if (!UNFIT_FOR_PATH.test(text) || name.endsWith(BASE64)) {
    return `/${encodedName}/${encodeURIComponent(text)}`;
  }
  return `/${encodedName}${BASE64}/${Buffer.from(text).toString('base64url') || '='}`;
}

/**
 * @param {import('node:http').IncomingMessage} response
 * @param {(result: PushResult) => void} resolve
 * @param {(error: unknown) => void} reject
 */
function readAnswer(response, resolve, reject) {
  let body = '';
  response.setEncoding('utf8');
  response.on('data', chunk => {
    body += chunk;
    if (body.length <= MAX_RESPONSE_CHARACTERS) return;
    const status = `status ${response.statusCode}`;
    reject(new Error(`push failed with ${status}, the response is longer than 16 MiB`));
    body = '';
    response.destroy();
  });
  response.on('end', () => {
    const status = /** @type {number} */ (response.statusCode);
    if (status >= 400) reject(new Error(`push failed with status ${status}, ${body}`));
    else resolve({ resp: response, body });
  });
  response.on('error', reject);
}

/**
 * @param {import('node:http').ClientRequest} request
 * @param {PushedRegistry} registry
 * @param {boolean} gzip
 * @returns {Promise<void>}
 */
async function sendMetrics(request, registry, gzip) {
  const body = await bodyOf(registry, gzip);
  addContentType(request, registry.contentType);
  request.write(body);
  request.end();
}

/**
 * Sets the header on the request instead of in the options: tests of applications compare the headers in the
 * options with those that they passed.
 *
 * @param {import('node:http').ClientRequest} request
 * @param {string | undefined} contentType
 */
function addContentType(request, contentType) {
  if (typeof contentType !== 'string' || typeof request.setHeader !== 'function') return;
  // Headers that were passed as an array are sent as they are; none can be added.
  if (request.headersSent || request.hasHeader?.('Content-Type')) return;
  request.setHeader('Content-Type', contentType);
}

/**
 * @param {PushedRegistry} registry
 * @param {boolean} gzip
 * @returns {Promise<string | Buffer>}
 */
async function bodyOf(registry, gzip) {
  if (typeof registry.clusterMetricsBytes === 'function') {
    const cluster = await registry.clusterMetricsBytes({ gzip });
    if (cluster?.length) return cluster;
  }
  // In the same turn: a program may reset its metrics right after calling push().
  const text = await registry.metrics();
  // At zlib's own level, as prom-client: tests of applications compare the body with gzipSync(text).
  return gzip ? compress(Buffer.from(text), {}) : text;
}

module.exports = { Pushgateway };
