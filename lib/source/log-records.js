'use strict';

// The records of a thread's log: table-publisher.js writes them, thread-mirror.js reads them.

/**
 * Kinds of records. The integers of most begin with the number of a metric; what has other types
 * is the record's text, as JSON. Memory is described by four integers: the number with which it was sent, a
 * byte offset, a length, and the number of the page.
 */
module.exports = /** @type {const} */ ({
  DEFINE: 1, // metric; its definition as text: of a custom metric object, name and default labels only
  DROP: 2, // metric
  FORM: 3, // metric, positions of the labels in their order
  VALUE: 4, // metric, position of the label; the next value of that label as text
  ROW: 5, // metric, row, second of its start, form, number of its value of each label; the new one as text
  REMOVE: 6, // metric, row, 1 if it has expired, 0 if the program has removed it
  CLEAR: 7, // metric
  RESET: 8, // metric, row, second in which it began to count from zero again
  DIGEST: 9, // metric, row, slice, number of its block, offset and lengths of its place, in float64
  EXEMPLAR: 10, // metric, row, column; labels, value and timestamp as text
  READ: 11, // metric; what get() of a custom metric object has returned, as text
  // The following ones have memory.
  PAGE: 12, // of the table
  OVERFLOW: 13, // the count of label sets beyond the limit
  DIGESTS: 14, // the next block of digests
  HEADS: 15, // of sparse buckets, see bucket-memory.js
  CHUNKS: 16, // of sparse buckets
});
