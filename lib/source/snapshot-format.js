'use strict';

// Constants of the snapshot format, used by the encoder and the decoder. docs/internals/snapshot-format.md
// describes the format. A change of the format changes that page and VERSION.

const MAGIC = Buffer.from('PCCSNAP\x01', 'latin1');
const END_MARK = Buffer.from('PCCSEND\x01', 'latin1');
const BYTE_ORDER = 0x01020304;
const VERSION = 1;
const HEADER_BYTES = 128;
const END_BYTES = 16;

/** Offsets of the header's numbers (f64) that are read or changed without decoding the rest. */
const HEADER_OFFSETS = Object.freeze({
  sequence: 40,
  dictionaryStart: 56,
  dictionaryEnd: 64,
  numbersStart: 72,
  columnsStart: 80,
  bytes: 88,
  dictionaryOffset: 96,
});

const INCARNATION_BYTES = 16;

const DEFINITION = 1;
const ROWS = 2;
const DROPPED = 3;

const TABLE_ENTRY = 0;
const JSON_ENTRY = 1;

module.exports = {
  MAGIC,
  END_MARK,
  BYTE_ORDER,
  VERSION,
  HEADER_BYTES,
  END_BYTES,
  HEADER_OFFSETS,
  INCARNATION_BYTES,
  DEFINITION,
  ROWS,
  DROPPED,
  TABLE_ENTRY,
  JSON_ENTRY,
};
