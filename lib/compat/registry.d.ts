import { Registry } from '../..';

export = Registry;
