'use strict';

// The endpoint for servers with the Request and Response of the Fetch standard.

const { invalidOption } = require('../options/coded-error');
const { MetricsEndpoint } = require('./metrics-endpoint');

/**
 * Responds to a Request of the Fetch standard with a registry's metrics, as metricsHandler() does: for Hono,
 * route handlers of Next.js, Bun and Deno.
 *
 * @param {any} registry Registry or AggregatorRegistry
 * @param {{method?: string, url: string, headers: {get: (name: string) => string | null}}} request
 * @param {import('./metrics-endpoint').EndpointOptions | null} [options]
 * @returns {Promise<Response>} on a failure with status 500, or 503 if there is nothing to show
 * @throws {TypeError} if `registry` is not a registry, `request` is not a Request, or an option is not valid
 */
async function metricsResponse(registry, request, options) {
  const endpoint = new MetricsEndpoint(registry, options, 'metricsResponse');
  if (typeof request?.headers?.get !== 'function') {
    throw invalidOption(
      'metricsResponse() expected a fetch Request as second argument. ' +
        'For a request and a response of node:http use metricsHandler()',
    );
  }
  const { status, headers, vary, body } = await endpoint.respond({
    header: name => request.headers.get(name),
    url: request.url,
  });
  const fields = new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  if (vary.length > 0) fields.set('Vary', vary.join(', '));
  return new Response(request.method === 'HEAD' ? null : body, { status, headers: fields });
}

module.exports = { metricsResponse };
