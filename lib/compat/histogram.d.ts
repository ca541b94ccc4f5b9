import { Histogram } from '../..';

export = Histogram;
