import { Counter } from '../..';

export = Counter;
