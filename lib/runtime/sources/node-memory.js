'use strict';

/**
 * @returns {NodeJS.MemoryUsage | undefined} undefined if it cannot be read at the moment: libuv opens a file
 *   to read it, and the process may be out of file descriptors
 */
function memoryUsage() {
  try {
    return process.memoryUsage();
  } catch {
    return undefined;
  }
}

module.exports = { memoryUsage };
