'use strict';

// Runs in the aggregator thread. Retains what the next thread needs if this one is lost: the last snapshot of
// each living worker, and a log of its label sets, because a snapshot contains only the new ones. A worker
// that hangs, drains or dies when the thread is lost cannot be asked again.

const { HEADER_BYTES, HEADER_OFFSETS, END_MARK, END_BYTES } = require('../source/snapshot-format');
const { viewOf, LITTLE_ENDIAN } = require('../source/byte-buffers');
const { lastName, dictionaryName } = require('../spool/file-names');
const { debug } = require('../options/debug-log');

const NO_NUMBERS = 16; // bytes: three empty lists, and padding

// A table that is compacted is sent again, and its old label sets stay in the log. Above this growth of the
// log, the full dictionary is requested again.
const MAX_LOG_GROWTH = 2;
const SMALL_LOG_BYTES = 1 << 20;

/** @typedef {import('../spool/spool').Spool} Spool */
/**
 * @typedef {object} Log
 * @property {number} first its first length, in bytes
 * @property {number} bytes its length now
 * @property {number} end the position in the worker's journal at which it ends
 */

class LastSnapshots {
  #spool;
  /** @type {Map<number, Log>} by worker; no entry if the log on disk has a gap */
  #logs = new Map();

  /** @param {Spool} spool */
  constructor(spool) {
    this.#spool = spool;
  }

  /**
   * Retains a snapshot in place of the one before it.
   *
   * @param {number} workerId
   * @param {Buffer} snapshot that has been applied
   * @param {string} [file] in the spool, of the snapshot; without it, the snapshot came over IPC
   * @returns {boolean} whether the worker should send its full dictionary next: the log is too long or has a
   *   gap
   */
  store(workerId, snapshot, file) {
    try {
      // In this order: the snapshot itself contains its new label sets, in case this thread is lost in
      // between.
      if (file === undefined) this.#spool.writeAtomically(lastName(workerId), [snapshot]);
      else this.#spool.rename(file, lastName(workerId));
      return this.#log(workerId, snapshot);
    } catch (error) {
      // A full disk, for example. Only a thread that is lost before the next scrape would miss the snapshot.
      debug('the snapshot of worker %d is not retained: %s', workerId, error);
      this.#logs.delete(workerId);
      if (file !== undefined) this.#spool.discard(file);
      // Over IPC, a full dictionary at each scrape would cost too much.
      return file !== undefined;
    }
  }

  /**
   * Reads the snapshots of a worker that an earlier thread has retained: its dictionary piece by piece, then
   * its numbers.
   *
   * @param {number} workerId
   * @returns {Buffer[]} in the order in which they have to be applied
   */
  read(workerId) {
    const log = this.#spool.readIfPresent(dictionaryName(workerId)) ?? Buffer.alloc(0);
    const last = this.#spool.readSnapshotIfPresent(lastName(workerId));
    const pieces = piecesOf(log);
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    // Nothing can be appended to an incomplete piece.
    if (bytes > 0 && bytes === log.length) {
      const end = numberAt(pieces[pieces.length - 1], HEADER_OFFSETS.dictionaryEnd);
      this.#logs.set(workerId, { first: pieces[0].length, bytes, end });
    }
    return last === undefined ? pieces : [...pieces, last];
  }

  /** @param {number} workerId a dead worker's */
  forget(workerId) {
    this.#logs.delete(workerId);
  }

  /**
   * @param {number} workerId
   * @param {Buffer} snapshot
   * @returns {boolean} see store()
   */
  #log(workerId, snapshot) {
    const [start, end] = [
      numberAt(snapshot, HEADER_OFFSETS.dictionaryStart),
      numberAt(snapshot, HEADER_OFFSETS.dictionaryEnd),
    ];
    if (start === 0) {
      const piece = withoutNumbers(snapshot);
      this.#spool.writeAtomically(dictionaryName(workerId), [piece]);
      this.#logs.set(workerId, { first: piece.length, bytes: piece.length, end });
      return false;
    }
    const log = this.#logs.get(workerId);
    // An answer in between came over IPC or could not be retained.
    if (log === undefined || log.end !== start) return true;
    if (start === end) return false;
    const piece = withoutNumbers(snapshot);
    this.#spool.append(dictionaryName(workerId), piece);
    log.bytes += piece.length;
    log.end = end;
    return log.bytes > SMALL_LOG_BYTES + log.first * MAX_LOG_GROWTH;
  }
}

/**
 * The snapshot's dictionary alone, as a snapshot that comes directly before it.
 *
 * @param {Buffer} snapshot
 * @returns {Buffer}
 */
function withoutNumbers(snapshot) {
  const start = numberAt(snapshot, HEADER_OFFSETS.dictionaryOffset);
  const end = numberAt(snapshot, HEADER_OFFSETS.numbersStart);
  const numbersStart = HEADER_BYTES + end - start;
  const bytes = numbersStart + NO_NUMBERS + END_BYTES;
  const sequence = numberAt(snapshot, HEADER_OFFSETS.sequence) - 0.5;
  const piece = Buffer.alloc(bytes);
  snapshot.copy(piece, 0, 0, HEADER_BYTES);
  snapshot.copy(piece, HEADER_BYTES, start, end);
  const view = viewOf(piece);
  view.setFloat64(HEADER_OFFSETS.sequence, sequence, LITTLE_ENDIAN);
  view.setFloat64(HEADER_OFFSETS.dictionaryOffset, HEADER_BYTES, LITTLE_ENDIAN);
  view.setFloat64(HEADER_OFFSETS.numbersStart, numbersStart, LITTLE_ENDIAN);
  view.setFloat64(HEADER_OFFSETS.columnsStart, numbersStart + NO_NUMBERS, LITTLE_ENDIAN);
  view.setFloat64(HEADER_OFFSETS.bytes, bytes, LITTLE_ENDIAN);
  view.setFloat64(bytes - END_BYTES, sequence, LITTLE_ENDIAN);
  END_MARK.copy(piece, bytes - END_MARK.length);
  return piece;
}

/**
 * @param {Buffer} log
 * @returns {Buffer[]} its complete pieces
 */
function piecesOf(log) {
  const pieces = [];
  for (let start = 0; start + HEADER_BYTES <= log.length;) {
    const bytes = numberAt(log.subarray(start), HEADER_OFFSETS.bytes);
    if (!(bytes >= HEADER_BYTES) || start + bytes > log.length) break;
    pieces.push(log.subarray(start, start + bytes));
    start += bytes;
  }
  return pieces;
}

/**
 * @param {Buffer} snapshot
 * @param {number} offset
 */
function numberAt(snapshot, offset) {
  return viewOf(snapshot).getFloat64(offset, LITTLE_ENDIAN);
}

module.exports = { LastSnapshots };
