export { validateMetricName } from '../..';

/** Whether all of these are valid label names. */
export function validateLabelName(names?: readonly string[]): boolean;

/** Throws an Error for the first label that is not one of `labelNames`. */
export function validateLabel(labelNames: readonly string[], labels?: object | null): void;
