'use strict';

// Writes one snapshot file: a name that nobody else has (`wx`), for nobody else to read (0600), closed before its name
// is told.

const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');

// One synchronous writev of the live columns: 0.23 ms for 0.8 MB, 2.8 ms for 8 MB, against 0.53 and 5.9 ms for copying
// them first, and no saturated thread pool can hold it up. Only a disk that is slow again and again is written to
// asynchronously, from a copy; and no longer than that is faster: behind an application's own work in the pool one
// write waited for seconds.
const SLOW_WRITE_MILLISECONDS = 5;
const FAST_BYTES_PER_MILLISECOND = 200_000;
const SLOW_WRITES_IN_A_ROW = 3;
const WRITES_UNTIL_NEXT_TRY = 100;

class SnapshotFile {
  #now;
  #isAsynchronous = false;
  /** Slow writes in a row; below 0 after the pool has turned out to be slower. */
  #slowWrites = 0;
  #slowestSync = 0;

  /** @param {() => number} [now] milliseconds, on a clock that only rises */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /**
   * @param {string} directory
   * @param {string} name
   * @param {{chunks: Uint8Array[], bytes: number}} snapshot
   * @returns {Promise<void> | undefined} undefined where it is written already
   * @throws {Error} of the file system; nothing is left behind then
   */
  write(directory, name, snapshot) {
    const file = path.join(directory, name);
    if (this.#isAsynchronous) return this.#writeAsynchronously(file, snapshot);
    const start = this.#now();
    SnapshotFile.writeSync(file, snapshot);
    this.#judgeSync(this.#now() - start, snapshot.bytes);
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
    const start = this.#now();
    // Opened and closed at once: each is a way through the pool as well.
    const descriptor = fs.openSync(file, 'wx', 0o600);
    try {
      await writeAll(descriptor, copy);
    } catch (error) {
      fs.rmSync(file, { force: true });
      throw error;
    } finally {
      fs.closeSync(descriptor);
    }
    if (this.#now() - start <= this.#slowestSync) return;
    this.#isAsynchronous = false;
    this.#slowWrites = -WRITES_UNTIL_NEXT_TRY;
  }

  /**
   * A slow write is one that is slow for its size: a million samples take 15 ms on a fast disk, too.
   *
   * @param {number} milliseconds
   * @param {number} bytes
   */
  #judgeSync(milliseconds, bytes) {
    const isSlow = milliseconds > SLOW_WRITE_MILLISECONDS + bytes / FAST_BYTES_PER_MILLISECOND;
    if (this.#slowWrites < 0) this.#slowWrites++;
    else if (isSlow) this.#slowWrites++;
    else this.#slowWrites = 0;
    if (!isSlow) return;
    this.#slowestSync = milliseconds;
    this.#isAsynchronous = this.#slowWrites >= SLOW_WRITES_IN_A_ROW;
  }
}

/**
 * @param {number} descriptor
 * @param {Buffer} bytes
 */
async function writeAll(descriptor, bytes) {
  const write = promisify(fs.write);
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await write(descriptor, bytes, done, bytes.length - done, null);
    if (bytesWritten === 0) throw new Error('the file system takes no more bytes');
    done += bytesWritten;
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
