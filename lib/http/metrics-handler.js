'use strict';

// The endpoint for requests and responses of node:http, and for the frameworks that are built on them.

const { invalidOption } = require('../options/coded-error');
const { MetricsEndpoint } = require('./metrics-endpoint');

/** @typedef {import('node:http').IncomingMessage} Request */
/** @typedef {import('node:http').ServerResponse} Response */

/**
 * Creates a request handler that responds with a registry's metrics: for node's http and https, express, and
 * the raw objects of fastify and Koa. An AggregatorRegistry responds with the metrics of the whole cluster,
 * rendered and compressed off the primary's event loop. The body is compressed if the scraper accepts gzip.
 * `?name[]=…` selects metrics.
 *
 * The handler respects the scraper's timeout (X-Prometheus-Scrape-Timeout-Seconds): workers that take longer
 * are shown with their last numbers.
 *
 * @param {any} registry Registry or AggregatorRegistry
 * @param {import('./metrics-endpoint').EndpointOptions | null} [options]
 * @returns {(req: Request, res: Response) => Promise<void>} rejects only if it is not called with such
 *   objects; on a failure it responds with status 500, or 503 if there is nothing to show, and calls
 *   `onError`
 * @throws {TypeError} if `registry` is not a registry, or an option is not valid
 */
function metricsHandler(registry, options) {
  const endpoint = new MetricsEndpoint(registry, options, 'metricsHandler');
  return async (req, res) => {
    checkExchange(req, res);
    const response = await endpoint.respond({ header: name => req.headers[name], url: req.url });
    // A timeout of the application may have responded already, or the scraper may have disconnected.
    if (res.destroyed || res.headersSent || res.writableEnded) return;
    try {
      send(req, res, response);
    } catch (error) {
      endpoint.report(error);
      res.destroy();
    }
  };
}

/**
 * @param {any} req
 * @param {any} res
 * @throws {TypeError} if they are objects of a framework
 */
function checkExchange(req, res) {
  if (typeof req?.headers === 'object' && typeof res?.setHeader === 'function') return;
  throw invalidOption(
    'the handler of metricsHandler() expected a request and a response of node:http. ' +
      'For a fetch Request use metricsResponse(); for fastify the plugin, or request.raw and reply.raw; ' +
      'for Koa ctx.req and ctx.res',
  );
}

/**
 * @param {Request} req
 * @param {Response} res
 * @param {import('./metrics-endpoint').ScrapeResponse} response
 */
function send(req, res, { status, headers, vary, body }) {
  res.statusCode = status;
  for (const name of Object.keys(headers)) res.setHeader(name, headers[name]);
  // A middleware may have set others.
  if (vary.length > 0) res.setHeader('Vary', [res.getHeader('Vary') ?? [], vary].flat().join(', '));
  if (req.method === 'HEAD') res.end();
  else res.end(body);
}

module.exports = { metricsHandler };
