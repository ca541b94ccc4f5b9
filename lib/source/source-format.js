'use strict';

// Constants of the format of sources: a log and columns. docs/internals/snapshot-format.md describes it. A
// change of the format changes that page and VERSION.

const LOG_MAGIC = Buffer.from('PCCLOG\x00\x01', 'latin1');
const MAGIC = Buffer.from('PCCCOLS\x01', 'latin1');
const END_MARK = Buffer.from('PCCEND\x00\x01', 'latin1');
const BYTE_ORDER = 0x01020304;
const VERSION = 1;

/** Length of a log's header, which contains its name. */
const LOG_HEADER_BYTES = 32;
const LOG_NAME_BYTES = 12;

const HEADER_BYTES = 128;
const END_BYTES = 16;
const INCARNATION_BYTES = 16;

/** Offset of the number (f64) of bytes of the columns file in its header. */
const BYTES_OFFSET = 88;

/** Kinds of records of a log. */
const DEFINE = 1;
const ROWS = 2;
const DROP = 3;
const STARTS = 4;

const TABLE_ENTRY = 0;
const JSON_ENTRY = 1;

/** Kinds of what rows have besides their columns. */
const DIGESTS = 0;
/** Of rows that have changed since the DIGESTS were written ahead. */
const LATER_DIGESTS = 1;
const EXEMPLARS = 2;
const BUCKETS = 3;
/** Of rows that have changed since the BUCKETS were written ahead. */
const LATER_BUCKETS = 4;

module.exports = {
  LOG_MAGIC,
  MAGIC,
  END_MARK,
  BYTE_ORDER,
  VERSION,
  LOG_HEADER_BYTES,
  LOG_NAME_BYTES,
  HEADER_BYTES,
  END_BYTES,
  INCARNATION_BYTES,
  BYTES_OFFSET,
  DEFINE,
  ROWS,
  DROP,
  STARTS,
  TABLE_ENTRY,
  JSON_ENTRY,
  DIGESTS,
  LATER_DIGESTS,
  EXEMPLARS,
  BUCKETS,
  LATER_BUCKETS,
};
