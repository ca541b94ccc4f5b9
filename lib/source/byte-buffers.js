'use strict';

// Writes and reads the bytes of a snapshot. Numbers are in the machine's byte order: a snapshot never leaves
// the machine, and a column then has the same bytes as a Float64Array. A reader detects another byte order by
// a number in the header.

/** Thrown if bytes do not follow the format. */
class SnapshotError extends Error {
  /**
   * @param {string} code of the rule that the bytes break
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = 'SnapshotError';
    this.code = code;
  }
}

const BLOCK_BYTES = 65536;
// Smaller pieces are copied: a separate chunk costs writev() more than the copy.
const COPY_BELOW_BYTES = 16384;

/**
 * Collects bytes in blocks. A full block is never copied again, so no call takes long, however many bytes
 * there are.
 */
class ByteWriter {
  /** @type {Uint8Array[]} */
  #complete = [];
  /** @type {Buffer} */
  #block;
  /** @type {DataView} */
  #view;
  /** The position of the block's first byte. */
  #blockStart;
  #capacity;

  /**
   * @param {number} [capacity] bytes of the first block
   * @param {number} [start] position of the first byte in the file; align() counts from the start of the file
   */
  constructor(capacity = 4096, start = 0) {
    /** The position of the next byte. */
    this.length = start;
    /** The position of the first byte that was not dropped. */
    this.start = start;
    this.#blockStart = start;
    this.#capacity = capacity;
    this.#block = Buffer.allocUnsafeSlow(capacity);
    this.#view = viewOf(this.#block);
  }

  /** @param {number} value */
  uint32(value) {
    this.#reserve(4);
    this.#view.setUint32(this.length - this.#blockStart, value, LITTLE_ENDIAN);
    this.length += 4;
  }

  /** @param {number} value */
  float64(value) {
    this.#reserve(8);
    this.#view.setFloat64(this.length - this.#blockStart, value, LITTLE_ENDIAN);
    this.length += 8;
  }

  /** @param {string} text */
  string(text) {
    // A UTF-16 unit takes three bytes of UTF-8 at most.
    this.#reserve(4 + text.length * 3);
    const at = this.length - this.#blockStart;
    const bytes = this.#block.write(text, at + 4);
    this.#view.setUint32(at, bytes, LITTLE_ENDIAN);
    this.length += 4 + bytes;
  }

  /**
   * A list: its length, then its items.
   *
   * @template T
   * @param {readonly T[]} items
   * @param {(item: T) => void} write
   */
  list(items, write) {
    this.uint32(items.length);
    for (const item of items) write(item);
  }

  /** @param {Record<string, unknown>} labels as a list of names and values */
  labels(labels) {
    this.list(Object.keys(labels), name => {
      this.string(name);
      this.string(String(labels[name]));
    });
  }

  /**
   * Writes many strings as one: their lengths in UTF-16 units, then all characters. This is ten times faster
   * than writing or reading each of them.
   *
   * @param {readonly string[]} texts
   */
  strings(texts) {
    this.uint32(texts.length);
    this.align(4);
    for (const { length } of texts) this.uint32(length);
    const bytes = Buffer.from(texts.join(''));
    this.uint32(bytes.length);
    this.append(bytes);
  }

  /** @param {Uint8Array} bytes are copied */
  bytes(bytes) {
    this.#reserve(bytes.length);
    this.#block.set(bytes, this.length - this.#blockStart);
    this.length += bytes.length;
  }

  /**
   * Adds bytes, without a copy if there are many. They must not change until the chunks have been written.
   *
   * @param {ArrayBufferView} view
   * @param {number} [byteLength] how many
   */
  append({ buffer, byteOffset, byteLength: all }, byteLength = all) {
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    if (byteLength < COPY_BELOW_BYTES) {
      this.bytes(bytes);
      return;
    }
    this.#completeBlock();
    this.#complete.push(bytes);
    this.length += byteLength;
    this.#blockStart = this.length;
  }

  /** @param {number} boundary a power of two */
  align(boundary) {
    this.#reserve(boundary);
    while (this.length % boundary !== 0) this.#block[this.length++ - this.#blockStart] = 0;
  }

  /** @returns {readonly Uint8Array[]} the blocks that are full */
  get completeChunks() {
    return this.#complete;
  }

  /** @returns {Uint8Array[]} all bytes so far; the complete chunks come first */
  chunks() {
    const used = this.length - this.#blockStart;
    return used === 0 ? [...this.#complete] : [...this.#complete, this.#block.subarray(0, used)];
  }

  /**
   * @param {number} position
   * @returns {Uint8Array[]} the bytes from there on
   */
  chunksFrom(position) {
    /** @type {Uint8Array[]} */
    const found = [];
    let start = this.length;
    // From the end, because a log may have many chunks before it.
    for (const chunk of this.chunks().reverse()) {
      if (start <= position) break;
      start -= chunk.length;
      found.push(chunk.subarray(Math.max(position - start, 0)));
    }
    return found.reverse();
  }

  /**
   * Drops complete chunks that end before a position.
   *
   * @param {number} position
   */
  dropBefore(position) {
    let [dropped, start] = [0, this.start];
    for (const { length } of this.#complete) {
      if (start + length > position) break;
      start += length;
      dropped++;
    }
    this.#complete.splice(0, dropped);
    this.start = start;
  }

  /** @returns {Buffer} all bytes so far; copied if there are several blocks */
  finish() {
    if (this.#complete.length === 0) return this.#block.subarray(0, this.length - this.#blockStart);
    return joined(this.chunks());
  }

  /** @param {number} more bytes that must fit into the block */
  #reserve(more) {
    if (this.length - this.#blockStart + more <= this.#block.length) return;
    this.#completeBlock();
    this.#capacity = Math.min(this.#capacity * 2, BLOCK_BYTES);
    this.#block = Buffer.allocUnsafeSlow(Math.max(this.#capacity, more));
    this.#view = viewOf(this.#block);
  }

  /** Makes the used part of the block a chunk. The rest of its memory is the next block. */
  #completeBlock() {
    const used = this.length - this.#blockStart;
    if (used === 0) return;
    this.#complete.push(this.#block.subarray(0, used));
    this.#block = this.#block.subarray(used);
    this.#view = viewOf(this.#block);
    this.#blockStart = this.length;
  }
}

/**
 * @param {readonly Uint8Array[]} chunks
 * @returns {Buffer} with its own ArrayBuffer, which can be transferred to a thread
 */
function joined(chunks) {
  const bytes = Buffer.allocUnsafeSlow(chunks.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, end);
    end += chunk.length;
  }
  return bytes;
}

/** @param {Buffer} buffer */
function viewOf(buffer) {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
}

/**
 * @param {string} base64 bytes of a source in a message
 * @returns {Buffer} with its own ArrayBuffer, because columns are views that start at a multiple of 8
 */
function fromBase64(base64) {
  const buffer = Buffer.allocUnsafeSlow(Buffer.byteLength(base64, 'base64'));
  return buffer.subarray(0, buffer.write(base64, 'base64'));
}

class ByteReader {
  /**
   * @param {Buffer} buffer whose memory starts at a multiple of 8
   * @param {number} start
   * @param {number} end
   */
  constructor(buffer, start, end) {
    this.buffer = buffer;
    this.view = viewOf(buffer);
    this.position = start;
    this.end = end;
  }

  uint32() {
    this.#need(4);
    const value = this.view.getUint32(this.position, LITTLE_ENDIAN);
    this.position += 4;
    return value;
  }

  float64() {
    this.#need(8);
    const value = this.view.getFloat64(this.position, LITTLE_ENDIAN);
    this.position += 8;
    return value;
  }

  string() {
    const bytes = this.uint32();
    this.#need(bytes);
    const text = this.buffer.toString('utf8', this.position, this.position + bytes);
    this.position += bytes;
    return text;
  }

  /** @param {number} bytes */
  hex(bytes) {
    this.#need(bytes);
    return this.buffer.toString('hex', this.position, (this.position += bytes));
  }

  /** @returns {string[]} */
  strings() {
    const count = this.count();
    const lengths = this.int32Array(count);
    const text = this.string();
    /** @type {string[]} */
    const texts = new Array(count);
    let start = 0;
    for (let i = 0; i < count; i++) texts[i] = text.substring(start, (start += lengths[i]));
    if (start !== text.length) throw new SnapshotError('length', `${start} characters of ${text.length}`);
    return texts;
  }

  /** @param {number} count */
  int32Array(count) {
    this.align(4);
    this.#need(count * 4);
    const array = new Int32Array(this.buffer.buffer, this.buffer.byteOffset + this.position, count);
    this.position += count * 4;
    return array;
  }

  /** @param {number} count */
  float64Array(count) {
    this.align(8);
    this.#need(count * 8);
    const array = new Float64Array(this.buffer.buffer, this.buffer.byteOffset + this.position, count);
    this.position += count * 8;
    return array;
  }

  /**
   * @template T
   * @param {() => T} read reads one item
   * @returns {T[]}
   */
  list(read) {
    return Array.from({ length: this.count() }, read);
  }

  /** @returns {[name: string, value: string][]} */
  labels() {
    return this.list(() => [this.string(), this.string()]);
  }

  /**
   * The number of records that follow. Throws if there are fewer bytes than records, because a wrong number
   * could make a loop run for minutes.
   */
  count() {
    const count = this.uint32();
    if (count > this.end - this.position) throw new SnapshotError('length', `${count} records do not fit`);
    return count;
  }

  /** @param {number} boundary */
  align(boundary) {
    this.position = Math.ceil(this.position / boundary) * boundary;
  }

  /** @param {number} bytes */
  #need(bytes) {
    if (this.position + bytes > this.end) {
      throw new SnapshotError('length', `${bytes} bytes at ${this.position} reach past ${this.end}`);
    }
  }
}

const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

module.exports = { ByteWriter, ByteReader, SnapshotError, joined, fromBase64, viewOf, LITTLE_ENDIAN };
