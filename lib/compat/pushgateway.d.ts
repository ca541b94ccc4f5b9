import { Pushgateway } from '../..';

export = Pushgateway;
