'use strict';

const { inspect } = require('node:util');
const { Registry } = require('../registry/registry');
const { checkOptionNames } = require('../options/option-names');
const { OPTION_NAMES } = require('./metrics-endpoint');
const { metricsHandler } = require('./metrics-handler');
const { invalidOption } = require('../options/coded-error');

const SERVER_OPTIONS = new Set([...OPTION_NAMES, 'port', 'host', 'path', 'registry']);

/**
 * @typedef {import('./metrics-endpoint').EndpointOptions & {
 *   port?: number | string,
 *   host?: string,
 *   path?: string,
 *   registry?: any,
 * }} MetricsServerOptions
 */

/**
 * Starts an HTTP server on a separate port that serves only metrics.
 *
 * @param {MetricsServerOptions | null} [settings] those of metricsHandler(); `port`, required, 0 for any free
 *   one; `host`, default 127.0.0.1, which other machines cannot reach; `path`, default /metrics; `registry`,
 *   a Registry or AggregatorRegistry, default the global registry
 * @returns {Promise<import('node:http').Server>} resolves when it listens
 * @throws {TypeError} if an option is not valid
 * @throws {Error} if the port cannot be used
 */
async function startMetricsServer(settings) {
  const {
    port,
    host = '127.0.0.1',
    path = '/metrics',
    registry = Registry.globalRegistry,
    ...options
  } = settings ?? {};
  checkOptionNames('startMetricsServer()', options, SERVER_OPTIONS);
  if (port == null) throw invalidOption('startMetricsServer expected a port, as in { port: 9100 }');
  // For Node.js, null and '' stand for all interfaces.
  if (typeof host !== 'string' || host === '')
    throw invalidOption(`host must be an address, 0.0.0.0 or :: for all: ${inspect(host)}`);
  if (typeof path !== 'string' || !path.startsWith('/')) throw invalidOption('path must begin with /');
  const handleMetrics = metricsHandler(registry, options);
  const server = require('node:http').createServer((req, res) => {
    const [requested] = (req.url ?? '').split('?');
    if (requested !== path) refuse(res, 404, `Metrics are at ${path}.\n`);
    else if (req.method === 'GET' || req.method === 'HEAD') handleMetrics(req, res);
    else refuse(res.setHeader('Allow', 'GET, HEAD'), 405, 'Metrics can only be read.\n');
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    // Exclusive: workers of a cluster would share the port, and each scrape would see another worker.
    server.listen({ port, host, exclusive: true }, () => resolve(server.off('error', reject)));
  });
  return server;
}

/**
 * @param {import('node:http').ServerResponse} res
 * @param {number} status
 * @param {string} text
 */
function refuse(res, status, text) {
  res.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
}

module.exports = { startMetricsServer };
