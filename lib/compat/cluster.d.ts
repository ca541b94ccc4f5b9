import { AggregatorRegistry } from '../..';

export = AggregatorRegistry;
