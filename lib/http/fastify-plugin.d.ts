import { MetricsHandlerOptions, Registry, RegistryContentType } from '../..';

declare namespace fastifyMetrics {
  interface Options extends MetricsHandlerOptions {
    /** Path of the metrics, default /metrics. A prefix is not added to it. */
    path?: string;
    /** A Registry or AggregatorRegistry, default the global registry. */
    registry?: Registry<RegistryContentType>;
  }
}

/** Adds a route that answers with the metrics, as metricsHandler() does. */
declare function fastifyMetrics(fastify: any, options?: fastifyMetrics.Options): Promise<void>;

export = fastifyMetrics;
