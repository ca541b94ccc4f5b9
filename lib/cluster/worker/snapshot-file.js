'use strict';

// One snapshot file: created exclusively (`wx`), readable by its owner only (0600), and closed before its name is
// announced. Everything is written synchronously: one writev() of 0.8 MB takes 0.2 ms, and asynchronous writes would wait
// behind the application's own work in libuv's pool. A large dictionary part is written ahead, between two turns of the loop.

const fs = require('node:fs');
const path = require('node:path');
const { incompleteHeader } = require('../wire/snapshot-encoder');

/** @typedef {import('../wire/snapshot-encoder').EncodedSnapshot} EncodedSnapshot */
/** @typedef {import('../wire/dictionary-part').DictionaryPart} DictionaryPart */

class SnapshotFile {
  #path;
  /** @type {number | undefined} while the file is open */
  #descriptor = undefined;
  /** @type {Uint8Array[]} what has been written ahead: a preliminary header, and chunks of the dictionary part */
  #ahead = [];
  /** Where the next chunk goes. */
  #position = 0;
  /** @type {unknown} why nothing can be written any more */
  #failure = undefined;

  /**
   * @param {string} directory
   * @param {string} name
   */
  constructor(directory, name) {
    this.#path = path.join(directory, name);
  }

  /**
   * Writes the chunks of a dictionary part that no longer change. An error shows in finish().
   *
   * @param {DictionaryPart} dictionary
   */
  writeAhead(dictionary) {
    const { completeChunks } = dictionary;
    if (this.#failure !== undefined || completeChunks.length === 0) return;
    try {
      if (this.#ahead.length === 0) this.#append([incompleteHeader(dictionary)]);
      this.#append(completeChunks.slice(this.#ahead.length - 1));
    } catch (error) {
      this.discard(error);
    }
  }

  /**
   * Writes what is missing, and closes the file.
   *
   * @param {EncodedSnapshot} snapshot
   * @throws {Error} of the file system; the file does not exist then
   */
  finish({ chunks }) {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      const isAhead = this.#ahead.length > 0;
      if (!this.#ahead.every((chunk, i) => i === 0 || chunk === chunks[i])) this.#restart();
      this.#append(chunks.slice(this.#ahead.length));
      if (isAhead) writeAll(this.#open(), [chunks[0]], 0);
      this.#close();
    } catch (error) {
      this.discard(error);
      throw error;
    }
  }

  /**
   * Removes the file if it is not finished. Nothing is written any more.
   *
   * @param {unknown} [reason]
   */
  discard(reason = new Error('the snapshot was discarded')) {
    this.#failure ??= reason;
    this.#ahead = [];
    if (this.#descriptor === undefined) return;
    this.#close();
    fs.rmSync(this.#path, { force: true });
  }

  /** @param {Uint8Array[]} chunks */
  #append(chunks) {
    if (chunks.length === 0) return;
    this.#position += writeAll(this.#open(), chunks, this.#position);
    this.#ahead.push(...chunks);
  }

  /** What was written ahead is not part of the snapshot. */
  #restart() {
    fs.ftruncateSync(this.#open(), 0);
    this.#ahead = [];
    this.#position = 0;
  }

  #open() {
    return (this.#descriptor ??= fs.openSync(this.#path, 'wx', 0o600));
  }

  #close() {
    const descriptor = this.#open();
    this.#descriptor = undefined;
    fs.closeSync(descriptor);
  }
}

/**
 * @param {number} descriptor
 * @param {Uint8Array[]} chunks
 * @param {number} position
 * @returns {number} how many bytes there were
 */
function writeAll(descriptor, chunks, position) {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  const written = fs.writevSync(descriptor, chunks, position);
  if (written !== bytes) writeRest(descriptor, chunks, position, written);
  return bytes;
}

/**
 * The kernel may write less than it was given (a full disk, a signal). Writing the rest succeeds, or fails with the reason.
 *
 * @param {number} descriptor
 * @param {Uint8Array[]} chunks
 * @param {number} position of the first chunk
 * @param {number} written bytes that are there already
 */
function writeRest(descriptor, chunks, position, written) {
  let start = 0;
  for (const chunk of chunks) {
    let done = Math.min(Math.max(written - start, 0), chunk.length);
    while (done < chunk.length) {
      const count = fs.writeSync(descriptor, chunk, done, chunk.length - done, position + start + done);
      if (count === 0) throw new Error('the file system takes no more bytes');
      done += count;
    }
    start += chunk.length;
  }
}

module.exports = { SnapshotFile };
