import { DefaultMetricsCollectorConfiguration, Registry, RegistryContentType } from '../..';

/**
 * Registers one family of default metrics.
 *
 * @param registry default: the global one
 */
declare const family: {
  <T extends RegistryContentType>(
    registry?: Registry<T>,
    config?: Omit<DefaultMetricsCollectorConfiguration<T>, 'register'>,
  ): unknown;
  metricNames: string[];
};

export = family;
