import { AggregatorFunction, MetricValueWithName } from '../..';

export { aggregators } from '../..';

/** An aggregator that makes one number of the samples which several processes have of one name and label set. */
export function AggregatorFactory(
  combine: (samples: MetricValueWithName<string>[]) => number,
): AggregatorFunction;
