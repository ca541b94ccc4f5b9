'use strict';

// The entry prom-client-cluster/fastify: a plugin that adds the route of the metrics.

const { Registry } = require('../registry/registry');
const { checkOptionNames } = require('../options/option-names');
const { invalidOption } = require('../options/coded-error');
const { OPTION_NAMES } = require('./metrics-endpoint');
const { metricsHandler } = require('./metrics-handler');

/** These include the options that fastify has for every plugin. */
const PLUGIN_OPTIONS = new Set([
  ...OPTION_NAMES,
  ...['registry', 'path', 'prefix', 'logLevel', 'logSerializers'],
]);

/**
 * @param {any} fastify
 * @param {import('./metrics-endpoint').EndpointOptions & {registry?: any, path?: string} | null} [settings]
 *   those of metricsHandler(); `path`, default /metrics; `registry`, a Registry or AggregatorRegistry,
 *   default the global registry
 * @throws {TypeError} if an option is not valid
 */
async function fastifyMetrics(fastify, settings) {
  const { registry = Registry.globalRegistry, path = '/metrics', ...options } = settings ?? {};
  if (typeof fastify?.get !== 'function')
    throw invalidOption('prom-client-cluster/fastify is a plugin: pass it to fastify.register()');
  checkOptionNames('prom-client-cluster/fastify', options, PLUGIN_OPTIONS);
  const handleMetrics = metricsHandler(registry, options);
  fastify.get(path, (/** @type {any} */ request, /** @type {any} */ reply) => {
    // Hooks of the application may have set headers.
    for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
    reply.hijack();
    return handleMetrics(request.raw, reply.raw);
  });
}

// As fastify-plugin does: the route belongs to the instance that registers the plugin, with its hooks.
Object.assign(fastifyMetrics, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'prom-client-cluster',
  [Symbol.for('plugin-meta')]: { name: 'prom-client-cluster', fastify: '>=4' },
});

module.exports = fastifyMetrics;
