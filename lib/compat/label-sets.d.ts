/**
 * prom-client's key of a label set: `name:value,` for each label. Values that contain separators can make two
 * label sets collide.
 *
 * @param labelNames the names to take, in their order; default all, sorted
 */
export function hashObject(labels: object, labelNames?: readonly string[]): string;

/**
 * Labels by name, from values in the order of the names, or from one object of labels. Throws an Error if the
 * number of values differs from that of the names.
 */
export function getLabels(labelNames: readonly string[], values: readonly unknown[]): Record<string, any>;

/** Whether a value is an object; null and functions are not. */
export function isObject(value: unknown): boolean;
