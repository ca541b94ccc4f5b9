// Types of prom-client-cluster/testing.

/** A registry of this package or of prom-client, or the text of a page. */
export type MetricsSource =
  string | { metrics(): string | Promise<string>; clusterMetrics?(): Promise<string> };

/** A sample as it is scraped. */
export interface Sample {
  /** Such as `requests_total`, or `duration_seconds_bucket`. */
  name: string;
  labels: { [name: string]: string };
  value: number;
}

/** What `lint()` objects to. */
export interface Problem {
  metric: string;
  text: string;
}

/**
 * The samples of a registry. In the primary of a cluster, those of an AggregatorRegistry are of all workers.
 *
 * @param name only those of this metric
 */
export function samples(registry: MetricsSource, name?: string): Promise<Sample[]>;

/**
 * Compares the metrics of a registry with a text in the Prometheus text format. The order of metrics, samples
 * and labels does not matter, nor does indentation. HELP and TYPE are compared if the text has them.
 *
 * @param names of metrics; default all of the registry
 * @throws {AssertionError} with the difference
 */
export function assertMetrics(
  registry: MetricsSource,
  text: string,
  names?: string | readonly string[],
): Promise<void>;

/** Checks names, types, units and HELP texts as `promtool check metrics` does. Resolves to the problems. */
export function lint(registry: MetricsSource): Promise<Problem[]>;
