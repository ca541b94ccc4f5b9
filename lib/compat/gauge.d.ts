import { Gauge } from '../..';

export = Gauge;
