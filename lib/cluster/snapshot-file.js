'use strict';

// Writes one snapshot file: a name that nobody else has (`wx`), for nobody else to read (0600), closed before its name
// is told.

const fs = require('node:fs');
const path = require('node:path');

// One synchronous writev of the live columns: 0.23 ms for 0.8 MB, 2.8 ms for 8 MB, against 0.53 and 5.9 ms for copying
// them first, and no saturated thread pool can hold it up. A disk that takes longer than this is written to
// asynchronously from then on, from a copy.
const SLOW_WRITE_MILLISECONDS = 5;
const SLOW_WRITE_BYTES_PER_MILLISECOND = 200_000;

class SnapshotFile {
  #slow = false;

  /**
   * @param {string} directory
   * @param {string} name
   * @param {{chunks: Uint8Array[], bytes: number}} snapshot
   * @returns {Promise<void> | undefined} undefined where it is written already
   * @throws {Error} of the file system; nothing is left behind then
   */
  write(directory, name, snapshot) {
    const file = path.join(directory, name);
    if (this.#slow) return this.#writeAsynchronously(file, snapshot);
    const start = performance.now();
    SnapshotFile.writeSync(file, snapshot);
    this.#judge(performance.now() - start, snapshot.bytes);
    return undefined;
  }

  /**
   * @param {string} file
   * @param {{chunks: Uint8Array[], bytes: number}} snapshot
   */
  static writeSync(file, { chunks, bytes }) {
    const descriptor = fs.openSync(file, 'wx', 0o600);
    try {
      const written = fs.writevSync(descriptor, chunks);
      if (written !== bytes) writeRest(descriptor, chunks, written);
    } catch (error) {
      fs.closeSync(descriptor);
      fs.rmSync(file, { force: true });
      throw error;
    }
    fs.closeSync(descriptor);
  }

  /**
   * @param {string} file
   * @param {{chunks: Uint8Array[], bytes: number}} snapshot
   */
  async #writeAsynchronously(file, { chunks, bytes }) {
    const copy = Buffer.concat(chunks, bytes);
    const start = performance.now();
    try {
      await fs.promises.writeFile(file, copy, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      if (/** @type {any} */ (error).code !== 'EEXIST') await fs.promises.rm(file, { force: true });
      throw error;
    }
    this.#judge(performance.now() - start, bytes);
  }

  /**
   * A slow write is one that is slow for its size: a million samples take 15 ms on a fast disk, too.
   *
   * @param {number} milliseconds
   * @param {number} bytes
   */
  #judge(milliseconds, bytes) {
    this.#slow = milliseconds > SLOW_WRITE_MILLISECONDS + bytes / SLOW_WRITE_BYTES_PER_MILLISECOND;
  }
}

/**
 * The kernel may take less than it was given (a full disk, a signal): the rest is offered again, which then fails with
 * the reason.
 *
 * @param {number} descriptor
 * @param {Uint8Array[]} chunks
 * @param {number} written bytes that are there already
 */
function writeRest(descriptor, chunks, written) {
  let skip = written;
  for (const chunk of chunks) {
    if (skip >= chunk.length) {
      skip -= chunk.length;
      continue;
    }
    while (skip < chunk.length) {
      const count = fs.writeSync(descriptor, chunk, skip);
      if (count === 0) throw new Error('the file system takes no more bytes');
      skip += count;
    }
    skip = 0;
  }
}

module.exports = { SnapshotFile };
