export { exponentialBuckets, linearBuckets } from '../..';
