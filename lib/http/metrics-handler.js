'use strict';

const { debuglog } = require('node:util');

const { METRICS_BYTES } = require('../registry/metric-view');
const { RELEASE } = require('../exposition/pooled-page');

const debug = debuglog('prom-client-cluster');

// What is left of the scraper's own timeout for rendering and the way back.
const MARGIN_MILLISECONDS = 500;
const MARGIN_SHARE = 0.2;

// The header is anybody's to write: it may not make a scrape wait longer for a hung worker than this, or than the
// registry itself would.
const MAX_WAIT_MILLISECONDS = 10_000;

/**
 * Answers with a registry's metrics: for node's http and https, express, and the raw objects of fastify. Of an
 * AggregatorRegistry, those of the whole cluster; the text is written, and compressed where the scraper accepts that,
 * off the primary's event loop.
 *
 * The time that a scraper is prepared to wait (X-Prometheus-Scrape-Timeout-Seconds) is kept: workers that take longer
 * are served from their last numbers.
 *
 * @param {any} registry Registry or AggregatorRegistry
 * @param {{selfMetrics?: boolean} | null} [options] `selfMetrics`: whether a cluster's page has metrics of the scrape itself (workers by state, age
 *   of the numbers, failures), default true
 * @returns {(req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse) => Promise<void>} never
 *   rejects; a failure is answered with status 500 and reported through NODE_DEBUG=prom-client-cluster
 * @throws {TypeError} where it is no registry
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
    // Somebody else (a timeout of the application's) may have answered, or the scraper may have gone.
    if (res.destroyed || res.headersSent || res.writableEnded) return;
    try {
      if (payload === undefined) sendFailure(req, res);
      else sendMetrics(req, res, payload, registry.contentType, gzip);
    } catch (error) {
      debug('the response broke while it was written: %s', error);
      res.destroy();
    }
  };
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 * @param {Payload} payload
 * @param {string} contentType
 * @param {boolean} gzip whether that is how the body is compressed
 */
function sendMetrics(req, res, { bytes, release }, contentType, gzip) {
  res.statusCode = 200;
  res.setHeader('Content-Type', contentType);
  addVary(res);
  if (gzip) res.setHeader('Content-Encoding', 'gzip');
  // Compressed, it is not worth the way back.
  if (release !== undefined && !gzip && isNodesOwn(req, res)) releaseWhenSent(res, release);
  send(req, res, bytes);
}

/**
 * @param {import('node:http').ServerResponse} res on a socket of its own
 * @param {() => void} release
 */
function releaseWhenSent(res, release) {
  const socket = /** @type {import('node:net').Socket} */ (res.socket);
  res.once('finish', () => {
    // Also emitted for a scraper that has gone in the middle; the system may not have let go of the bytes then.
    if (!socket.destroyed) release();
  });
}

/**
 * Whether nobody but Node.js and the system gets to see what is sent. A middleware or recorder that has put its own
 * functions there may keep the bytes (a cache) or read them later (compression), and so may whoever reads the other end of
 * a stream that is no socket (a tunnel, a function in somebody's cloud).
 *
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 */
function isNodesOwn(req, res) {
  const { ServerResponse, OutgoingMessage } = require('node:http');
  const { Socket } = require('node:net');
  // ServerResponse has both from OutgoingMessage, unless somebody has replaced them.
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
 * Beside what a middleware has put there.
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
 * What is to be sent, and to be called when nobody needs its bytes any more.
 *
 * @typedef {{bytes: Buffer, release?: () => void}} Payload
 */

/**
 * @param {any} registry
 * @param {{gzip: boolean, timeout: number | undefined, selfMetrics: boolean}} options `timeout` in milliseconds
 * @returns {Promise<Payload>}
 */
async function payloadOf(registry, options) {
  const { gzip } = options;
  if (typeof registry.clusterMetricsBytes === 'function') {
    const body = await registry.clusterMetricsBytes(options);
    if (body !== undefined) return { bytes: body.bytes, release: body[RELEASE] };
    return { bytes: gzip ? await compress(Buffer.alloc(0)) : Buffer.alloc(0) };
  }
  const text = (await registry[METRICS_BYTES]?.()) ?? Buffer.from(await registry.metrics());
  return { bytes: gzip ? await compress(text) : text };
}

/** @param {Buffer} bytes */
function compress(bytes) {
  const { gzip } = require('node:zlib');
  /** @type {Promise<Buffer>} */
  const compressed = new Promise((resolve, reject) => {
    gzip(bytes, { level: 1 }, (error, result) => (error ? reject(error) : resolve(result)));
  });
  return compressed;
}

/**
 * Whether a scraper takes gzip (RFC 9110, 12.5.3): named, or covered by `*`, and not weighted 0.
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
 * @param {number} own milliseconds that the registry itself would wait
 * @returns {number | undefined} milliseconds to wait for workers; undefined for the registry's own
 */
function timeoutOf(req, own) {
  const milliseconds = Number(req.headers['x-prometheus-scrape-timeout-seconds']) * 1000;
  if (!(milliseconds > 0) || milliseconds === Infinity) return undefined;
  const wait = milliseconds - Math.min(MARGIN_MILLISECONDS, milliseconds * MARGIN_SHARE);
  return Math.min(wait, Math.max(own, MAX_WAIT_MILLISECONDS));
}

module.exports = { metricsHandler };
