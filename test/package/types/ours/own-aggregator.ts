// A program that names an aggregator of its own.

import { Aggregator, AggregatorFunction, Gauge, aggregators } from 'prom-client';

declare module 'prom-client' {
  interface AggregatorNames {
    median: AggregatorFunction;
  }
}

aggregators.median = metrics => metrics[metrics.length >> 1];
const name: Aggregator = 'median';
new Gauge({ name: 'g', help: 'help', aggregator: 'median' });
// @ts-expect-error: no such aggregator
new Gauge({ name: 'g', help: 'help', aggregator: 'mode' });
