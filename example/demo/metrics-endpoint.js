'use strict';

const http = require('node:http');

/**
 * Serves `/metrics` for the whole cluster from the primary, as each library documents it.
 *
 * @param {object} client the metrics library
 * @returns {http.Server} not listening yet
 */
function createMetricsServer(client) {
  const registry = new client.AggregatorRegistry();
  const answer = client.metricsHandler ? client.metricsHandler(registry) : textHandler(registry);
  return http.createServer((request, response) => {
    if (request.url === '/metrics') answer(request, response);
    else response.writeHead(404).end();
  });
}

/** The handler that prom-client's README shows. */
function textHandler(registry) {
  return async (request, response) => {
    try {
      const text = await registry.clusterMetrics();
      response.setHeader('Content-Type', registry.contentType);
      response.end(text);
    } catch (error) {
      response.writeHead(500).end(error.message);
    }
  };
}

module.exports = { createMetricsServer };
