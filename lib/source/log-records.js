'use strict';

// The records of a thread's log: table-publisher.js writes them, thread-mirror.js reads them.

/**
 * Kinds of records. The integers of most begin with the number of a metric; what has other types
 * is the record's text, as JSON.
 */
const REGISTRY = 1; // number; its default labels as text
const DEFINE = 2; // metric, registry; its definition as text
const CUSTOM = 3; // metric, registry; its name as text
const DROP = 4; // metric
const PAGE = 5; // metric, number of the page, number of the memory, byte offset, length
const FORM = 6; // metric, positions of the labels in their order
const VALUE = 7; // metric, position of the label; the next value of that label as text
const ROW = 8; // metric, row, second of its start, form, number of its value of each label; the new one as text
const ORDER = 9; // metric, all live rows
const REMOVE = 10; // metric, row
const CLEAR = 11; // metric
const OVERFLOW = 12; // metric, number of the memory of its count, byte offset
const DIGESTS = 13; // metric, number of the memory: the next block of its digests
const DIGEST = 14; // metric, row, slice, number of its block, offset and lengths of its place, in float64
const EXEMPLAR = 15; // metric, row, column; labels, value and timestamp as text; or metric, row: dropped
const READ = 16; // metric; what get() of a custom metric object has returned, as text
const RESET = 17; // metric, row, second in which it began to count from zero again
const BUCKETS = 18; // metric, kind and number of a page of sparse buckets, number of the memory

module.exports = {
  REGISTRY,
  DEFINE,
  CUSTOM,
  DROP,
  PAGE,
  FORM,
  VALUE,
  ROW,
  ORDER,
  REMOVE,
  CLEAR,
  OVERFLOW,
  DIGESTS,
  DIGEST,
  EXEMPLAR,
  READ,
  RESET,
  BUCKETS,
};
