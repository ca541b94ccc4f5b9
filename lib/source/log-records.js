'use strict';

// The records of a thread's log: table-publisher.js writes them, thread-mirror.js reads them.

/** How the row of a REMOVE record ended. */
const [BEFORE, EXPIRED, REMOVED] = [0, 1, 2];

/**
 * Kinds of records. The integers of most begin with the number of a metric; what has other types
 * is the record's text, as JSON.
 */
module.exports = /** @type {const} */ ({
  REGISTRY: 1, // number; its default labels as text
  DEFINE: 2, // metric, registry; its definition as text
  CUSTOM: 3, // metric, registry; its name as text
  DROP: 4, // metric
  PAGE: 5, // metric, number of the page, number of the memory, byte offset, length
  FORM: 6, // metric, positions of the labels in their order
  VALUE: 7, // metric, position of the label; the next value of that label as text
  ROW: 8, // metric, row, second of its start, form, number of its value of each label; the new one as text
  ORDER: 9, // metric, all live rows
  REMOVE: 10, // metric, row, how: BEFORE the log, it has EXPIRED, or the program has REMOVED it
  CLEAR: 11, // metric
  OVERFLOW: 12, // metric, number of the memory of its count, byte offset
  DIGESTS: 13, // metric, number of the memory: the next block of its digests
  DIGEST: 14, // metric, row, slice, number of its block, offset and lengths of its place, in float64
  EXEMPLAR: 15, // metric, row, column; labels, value and timestamp as text; or metric, row: dropped
  READ: 16, // metric; what get() of a custom metric object has returned, as text
  RESET: 17, // metric, row, second in which it began to count from zero again
  ...{ BEFORE, EXPIRED, REMOVED },
  BUCKETS: 18, // metric, kind and number of a page of sparse buckets, number of the memory
});
