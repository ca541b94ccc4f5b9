'use strict';

const { debuglog, promisify } = require('node:util');

const { METRICS_BYTES } = require('../registry/metric-view');
const { RELEASE } = require('../exposition/pooled-page');
const { coalesce } = require('./coalesce');

const debug = debuglog('prom-client-cluster');

// Part of the scraper's timeout that is reserved for rendering and for sending the response.
const MARGIN_MILLISECONDS = 500;
const MARGIN_SHARE = 0.2;

// Any client can set the timeout header. It cannot make a scrape wait for a hung worker longer than this, or
// longer than the registry's own timeout if that is more.
const MAX_WAIT_MILLISECONDS = 10_000;

/**
 * Renders of each registry that concurrent requests share, plain and compressed.
 *
 * @type {WeakMap<object, {plain: () => Promise<Buffer>, gzip: () => Promise<Buffer>}>}
 */
const sharedRenders = new WeakMap();

/**
 * Creates a request handler that responds with a registry's metrics: for node's http and https, express, and
 * the raw objects of fastify. An AggregatorRegistry responds with the metrics of the whole cluster, rendered
 * and compressed off the primary's event loop. The body is compressed if the scraper accepts gzip.
 *
 * The handler respects the scraper's timeout (X-Prometheus-Scrape-Timeout-Seconds): workers that take longer
 * are shown with their last numbers.
 *
 * @param {any} registry Registry or AggregatorRegistry
 * @param {{selfMetrics?: boolean} | null} [options] `selfMetrics`: whether a cluster's page includes metrics
 *   about the scrape itself (workers by state, age of their numbers, failures), default true
 * @returns {(req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse) =>
 *   Promise<void>} never rejects; on a failure it responds with status 500 and logs through
 *   NODE_DEBUG=prom-client-cluster
 * @throws {TypeError} if `registry` is not a registry
 */
function metricsHandler(registry, options) {
  if (typeof registry?.metrics !== 'function') throw new TypeError('metricsHandler expected a Registry');
  const selfMetrics = options?.selfMetrics ?? true;
  return async (req, res) => {
    const gzip = acceptsGzip(req.headers['accept-encoding']);
    /** @type {Payload | undefined} */
    let payload;
    try {
      const timeout = timeoutOf(req, registry.timeout ?? 0);
      payload = await payloadOf(registry, { gzip, timeout, selfMetrics });
    } catch (error) {
      debug('metrics cannot be served: %s', error);
    }
    // A timeout of the application may have responded already, or the scraper may have disconnected.
    if (res.destroyed || res.headersSent || res.writableEnded) return;
    try {
      if (payload === undefined) sendFailure(req, res);
      else sendMetrics(req, res, payload, registry.contentType, gzip);
    } catch (error) {
      debug('writing the response failed: %s', error);
      res.destroy();
    }
  };
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 * @param {Payload} payload
 * @param {string} contentType
 * @param {boolean} gzip whether the body is compressed
 */
function sendMetrics(req, res, { bytes, release }, contentType, gzip) {
  res.statusCode = 200;
  res.setHeader('Content-Type', contentType);
  addVary(res);
  if (gzip) res.setHeader('Content-Encoding', 'gzip');
  // A compressed page is small: reusing its buffer saves nothing.
  if (release !== undefined && !gzip && isNodesOwn(req, res)) releaseWhenSent(res, release);
  send(req, res, bytes);
}

/**
 * @param {import('node:http').ServerResponse} res written to a plain socket
 * @param {() => void} release
 */
function releaseWhenSent(res, release) {
  const socket = /** @type {import('node:net').Socket} */ (res.socket);
  res.once('finish', () => {
    // 'finish' is also emitted if the scraper has disconnected; the system may still be reading the bytes
    // then.
    if (!socket.destroyed) release();
  });
}

/**
 * Whether only Node.js and the system read the bytes of the body, so that their buffer can be reused
 * afterwards. A middleware that replaces `write` or `end` may retain the bytes (a cache) or read them later
 * (compression); so may the reader of a stream that is not a socket (a tunnel, a cloud function).
 *
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 */
function isNodesOwn(req, res) {
  const { ServerResponse, OutgoingMessage } = require('node:http');
  const { Socket } = require('node:net');
  // ServerResponse inherits both from OutgoingMessage unless they were replaced.
  const { write, end } = OutgoingMessage.prototype;
  if (!(res instanceof ServerResponse) || res.write !== write || res.end !== end) return false;
  /** @type {any} */
  const { socket } = res;
  if (!(socket instanceof Socket) || socket !== req.socket) return false;
  return Boolean(/** @type {any} */ (socket)._handle) && !Object.hasOwn(socket, 'write');
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 */
function sendFailure(req, res) {
  res.statusCode = 500;
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  send(req, res, Buffer.from('Metrics are not available.\n'));
}

/**
 * Adds to the Vary header that a middleware may have set.
 *
 * @param {import('node:http').ServerResponse} res
 */
function addVary(res) {
  const names = [res.getHeader('Vary') ?? []].flat().join(', ');
  if (names === '*' || /\baccept-encoding\b/i.test(names)) return;
  res.setHeader('Vary', names === '' ? 'Accept-Encoding' : `${names}, Accept-Encoding`);
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 * @param {Buffer} body
 */
function send(req, res, body) {
  res.setHeader('Content-Length', body.length);
  if (req.method === 'HEAD') res.end();
  else res.end(body);
}

/**
 * The body, and what to call once its bytes are no longer needed.
 *
 * @typedef {{bytes: Buffer, release?: () => void}} Payload
 */

/**
 * @param {any} registry
 * @param {{gzip: boolean, timeout: number | undefined, selfMetrics: boolean}} options `timeout` in
 *   milliseconds
 * @returns {Promise<Payload>}
 */
async function payloadOf(registry, options) {
  const { gzip } = options;
  if (typeof registry.clusterMetricsBytes === 'function') {
    const body = await registry.clusterMetricsBytes(options);
    if (body !== undefined) return { bytes: body.bytes, release: body[RELEASE] };
    return { bytes: gzip ? await compress(Buffer.alloc(0)) : Buffer.alloc(0) };
  }
  const renders = rendersOf(registry);
  return { bytes: await (gzip ? renders.gzip() : renders.plain()) };
}

/** @param {any} registry */
function rendersOf(registry) {
  let renders = sharedRenders.get(registry);
  if (renders === undefined) {
    const render = async () => (await registry[METRICS_BYTES]?.()) ?? Buffer.from(await registry.metrics());
    renders = { plain: coalesce(render), gzip: coalesce(async () => compress(await render())) };
    sharedRenders.set(registry, renders);
  }
  return renders;
}

/**
 * @param {Buffer} bytes
 * @returns {Promise<Buffer>}
 */
function compress(bytes) {
  return promisify(require('node:zlib').gzip)(bytes, { level: 1 });
}

/**
 * Whether a scraper accepts gzip (RFC 9110, 12.5.3): by name or by `*`, with a weight above 0.
 *
 * @param {string | string[] | undefined} header
 * @returns {boolean}
 */
function acceptsGzip(header) {
  /** @type {Map<string, number>} */
  const weights = new Map();
  for (const part of String(header ?? '')
    .toLowerCase()
    .split(',')) {
    const [coding, ...parameters] = part.split(';').map(text => text.trim());
    const weight = parameters.find(parameter => parameter.startsWith('q='));
    weights.set(coding, weight === undefined ? 1 : Number(weight.slice(2)));
  }
  return (weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0) > 0;
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {number} own the registry's own timeout, milliseconds
 * @returns {number | undefined} how long to wait for workers, milliseconds; undefined for the registry's own
 *   timeout
 */
function timeoutOf(req, own) {
  const milliseconds = Number(req.headers['x-prometheus-scrape-timeout-seconds']) * 1000;
  if (!(milliseconds > 0) || milliseconds === Infinity) return undefined;
  const wait = milliseconds - Math.min(MARGIN_MILLISECONDS, milliseconds * MARGIN_SHARE);
  return Math.min(wait, Math.max(own, MAX_WAIT_MILLISECONDS));
}

module.exports = { metricsHandler };
