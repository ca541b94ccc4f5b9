import { collectDefaultMetrics } from '../..';

export = collectDefaultMetrics;
