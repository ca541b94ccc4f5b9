import { Summary } from '../..';

export = Summary;
