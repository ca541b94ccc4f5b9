'use strict';

const { Registry } = require('../registry/registry');

// http, https, url and zlib are required where they are used, so that runtimes without them can load the library, and
// under the names that applications mock: some test tools take 'http' and 'node:http' for two modules.

const BASE64 = '@base64';

/**
 * Label values that a path cannot carry as they are: the gateway decodes the path before it splits it and cleans dot
 * segments away, so that `a/b` becomes two segments and `..` addresses another group.
 */
const UNFIT_FOR_PATH = /^$|^\.\.?$|\//;

/**
 * What a Pushgateway pushes: a Registry, or somebody's own object. One that can, like an AggregatorRegistry, is asked
 * for the metrics of a cluster.
 *
 * @typedef {object} PushedRegistry
 * @property {() => string | Promise<string>} metrics
 * @property {string} [contentType]
 * @property {(options: {gzip: boolean}) => Promise<{bytes: Buffer} | undefined>} [clusterMetricsBytes]
 */

/**
 * What http.request() takes, which overrides what the gateway's URL says; the method is always our own. `timeout` is
 * in milliseconds. With the header `Content-Encoding: gzip`, written exactly so, bodies are compressed.
 *
 * @typedef {import('node:https').RequestOptions & {requireJobName?: boolean}} PushgatewayOptions `requireJobName`,
 *   default true, has pushes without a jobName throw
 */

/**
 * The group of series that a push replaces or a delete removes.
 *
 * @typedef {object} PushParameters
 * @property {string} [jobName]
 * @property {Record<string, string>} [groupings] further labels of the group, ignored without a jobName
 */

/** @typedef {{resp: import('node:http').IncomingMessage, body: string}} PushResult the gateway's answer, read to its end */

/**
 * Pushes metrics to a Prometheus Pushgateway, for jobs that do not live long enough to be scraped.
 *
 * All three operations reject as the socket does, with `Error: Pushgateway request timed out` where the connection was
 * idle for the option `timeout`, and with `Error: push failed with status …` where the gateway answers 400 or above.
 * Redirects are not followed, they are an answer like any other.
 */
class Pushgateway {
  /**
   * @param {string} gatewayUrl http or https, with `user:password@` for basic authentication and a path where the
   *   gateway has one; a query is ignored
   * @param {PushgatewayOptions | PushedRegistry | null} [options] or the registry, where there are no options
   * @param {PushedRegistry | null} [registry] what to push, default the global registry. Of an AggregatorRegistry the
   *   cluster's metrics are pushed, and its own ones where there never was a worker
   */
  constructor(gatewayUrl, options, registry) {
    const secondIsRegistry = isRegistry(options);
    const { requireJobName, ...requestOptions } = {
      requireJobName: true,
      .../** @type {PushgatewayOptions} */ (secondIsRegistry ? undefined : options),
    };
    /** @type {PushedRegistry} */
    this.registry = registry ?? (secondIsRegistry ? options : Registry.globalRegistry);
    this.gatewayUrl = gatewayUrl;
    this.requireJobName = requireJobName;
    this.requestOptions = requestOptions;
  }

  /**
   * Replaces those metrics of the group that have the name of a pushed one (POST).
   *
   * @param {PushParameters} [params]
   * @returns {Promise<PushResult>}
   * @throws {Error} at once, where a required jobName is missing
   */
  pushAdd(params = {}) {
    checkJobName(this, params);
    return exchange(this, 'POST', params);
  }

  /**
   * Replaces all metrics of the group (PUT).
   *
   * @param {PushParameters} [params]
   * @returns {Promise<PushResult>}
   * @throws {Error} at once, where a required jobName is missing
   */
  push(params = {}) {
    checkJobName(this, params);
    return exchange(this, 'PUT', params);
  }

  /**
   * Removes the group (DELETE).
   *
   * @param {PushParameters} [params]
   * @returns {Promise<PushResult>}
   * @throws {Error} at once, where a required jobName is missing
   */
  delete(params = {}) {
    checkJobName(this, params);
    return exchange(this, 'DELETE', params);
  }
}

/**
 * @param {any} value
 * @returns {value is PushedRegistry}
 */
function isRegistry(value) {
  return typeof value?.metrics === 'function';
}

/**
 * @param {Pushgateway} gateway
 * @param {PushParameters} params
 */
function checkJobName(gateway, params) {
  if (!params.jobName && gateway.requireJobName) throw new Error('Missing jobName parameter');
}

/**
 * The request is opened before the metrics are collected, as prom-client does: applications' tests look at it as soon
 * as push() has returned, and the timeout covers the `collect` hooks.
 *
 * @param {Pushgateway} gateway
 * @param {'POST' | 'PUT' | 'DELETE'} method
 * @param {PushParameters} params
 * @returns {Promise<PushResult>}
 */
function exchange({ gatewayUrl, requestOptions, registry }, method, params) {
  return new Promise((resolve, reject) => {
    const target = targetOf(gatewayUrl, params);
    const transport = target.protocol === 'https:' ? require('https') : require('http');
    const options = { ...target, ...requestOptions, method };
    const isDelete = method === 'DELETE';
    if (isDelete && options.headers) options.headers = withoutContentEncoding(options.headers);

    const request = transport.request(options, response => readAnswer(response, resolve, reject));
    /** @param {unknown} error */
    const fail = error => {
      reject(error);
      // What applications put in place of a request may not have it.
      request.destroy?.();
    };
    request.on('error', reject);
    request.on('timeout', () => fail(new Error('Pushgateway request timed out')));
    if (isDelete) request.end();
    else sendMetrics(request, registry, asksForGzip(requestOptions.headers)).catch(fail);
  });
}

/**
 * What the URL says about the request, in the shape that applications' tests know from prom-client. That is why the
 * legacy parser is used here: URL drops default ports and cannot tell `user@` from `user:@`.
 *
 * @param {string} gatewayUrl
 * @param {PushParameters} params
 * @returns {Record<string, any>}
 */
function targetOf(gatewayUrl, params) {
  const url = require('url');
  const gateway = url.parse(gatewayUrl);
  const prefix = (gateway.pathname ?? '').replace(/\/+$/, '');
  const { protocol, slashes, auth, host } = gateway;
  const pathname = `${prefix}/metrics${groupPath(params)}`;
  return { ...url.parse(url.format({ protocol, slashes, auth, host, pathname })) };
}

/**
 * @param {PushParameters} params
 * @returns {string} '' for no job
 */
function groupPath({ jobName, groupings }) {
  if (!jobName) return '';
  const labels = [['job', jobName], ...Object.entries(groupings ?? {})];
  return labels.map(([name, value]) => labelPath(name, value)).join('');
}

/**
 * One label of the group: `/name/value`, or `/name@base64/value` in the URL-safe alphabet, where one `=` stands for ''.
 * https://github.com/prometheus/pushgateway#url
 *
 * @param {string} name may already end in `@base64`, with a value that the caller has encoded
 * @param {unknown} value
 * @returns {string}
 * @throws {URIError} where it has half a surrogate pair
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
 * Set here and not in the options, whose headers applications' tests compare with those that they have given.
 *
 * @param {import('node:http').ClientRequest} request
 * @param {string | undefined} contentType
 */
function addContentType(request, contentType) {
  if (typeof contentType !== 'string' || typeof request.setHeader !== 'function') return;
  // Headers that were given as a list of lines are sent as they are, and cannot be added to.
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
    if (cluster !== undefined) return cluster.bytes;
  }
  // Not a turn later: a program may reset its metrics as soon as it has called push().
  const text = await registry.metrics();
  return gzip ? compress(text) : text;
}

/**
 * @param {string} text
 * @returns {Promise<Buffer>}
 */
function compress(text) {
  const { gzip } = require('zlib');
  return new Promise((resolve, reject) => {
    gzip(text, (error, bytes) => (error ? reject(error) : resolve(bytes)));
  });
}

/** @param {any} headers */
function asksForGzip(headers) {
  return headers?.['Content-Encoding'] === 'gzip';
}

/**
 * @param {any} headers
 * @returns {any} what a request without a body can carry; a copy, the headers are the caller's
 */
function withoutContentEncoding(headers) {
  if (headers?.['Content-Encoding'] === undefined) return headers;
  const others = { ...headers };
  delete others['Content-Encoding'];
  return others;
}

module.exports = { Pushgateway };
