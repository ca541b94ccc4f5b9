/**
 * prom-client's key of a label set: `name:value,` for each label. Two sets whose values hold separators may share one.
 *
 * @param labelNames the names to take, in their order; default all, sorted
 */
export function hashObject(labels: object, labelNames?: readonly string[]): string;

/** Labels by name, of values in the order of the names. Throws an Error where there are more or less of these. */
export function getLabels(labelNames: readonly string[], values: readonly unknown[]): Record<string, any>;
