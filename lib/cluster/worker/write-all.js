'use strict';

// Writes bytes to an open file, all of them.

const fs = require('node:fs');

/**
 * @param {number} descriptor
 * @param {Uint8Array[]} chunks
 * @param {number} position
 * @returns {number} number of bytes written
 */
function writeAll(descriptor, chunks, position) {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  const written = fs.writevSync(descriptor, chunks, position);
  if (written !== bytes) writeRest(descriptor, chunks, position, written);
  return bytes;
}

/**
 * writev() may write fewer bytes than requested (a full disk, a signal). Writing the rest succeeds or throws
 * the reason.
 *
 * @param {number} descriptor
 * @param {Uint8Array[]} chunks
 * @param {number} position of the first chunk
 * @param {number} written bytes written already
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

module.exports = { writeAll };
