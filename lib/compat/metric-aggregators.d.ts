import { AggregatorFunction, MetricValueWithName } from '../..';

export { aggregators } from '../..';

/** Creates an aggregator from a function that combines the samples of one label set into one number. */
export function AggregatorFactory(
  combine: (samples: MetricValueWithName<string>[]) => number,
): AggregatorFunction;
