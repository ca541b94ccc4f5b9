'use strict';

// The records of a thread's log: table-publisher.js writes them, thread-mirror.js reads them.

/**
 * Kinds of records. The integers of most begin with the number of a metric; what has other types
 * is the record's text, as JSON. Memory is described by four integers: the number with which it was sent, a
 * byte offset, a length, and the number of the page.
 */
module.exports = /** @type {const} */ ({
  REGISTRY: 1, // number; its default labels as text
  DEFINE: 2, // metric, registry; its definition as text
  CUSTOM: 3, // metric, registry; its name as text
  DROP: 4, // metric
  FORM: 5, // metric, positions of the labels in their order
  VALUE: 6, // metric, position of the label; the next value of that label as text
  ROW: 7, // metric, row, second of its start, form, number of its value of each label; the new one as text
  REMOVE: 8, // metric, row, 1 if it has expired, 0 if the program has removed it
  CLEAR: 9, // metric
  RESET: 10, // metric, row, second in which it began to count from zero again
  DIGEST: 11, // metric, row, slice, number of its block, offset and lengths of its place, in float64
  EXEMPLAR: 12, // metric, row, column; labels, value and timestamp as text; or metric, row: dropped
  READ: 13, // metric; what get() of a custom metric object has returned, as text
  // The following ones have memory.
  PAGE: 14, // of the table
  OVERFLOW: 15, // the count of label sets beyond the limit
  DIGESTS: 16, // the next block of digests
  HEADS: 17, // of sparse buckets, see bucket-memory.js
  CHUNKS: 18, // of sparse buckets
});
