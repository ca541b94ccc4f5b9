'use strict';

/**
 * @returns {NodeJS.MemoryUsage | undefined} undefined where it cannot be had at the moment: libuv needs a file
 *   descriptor to find out
 */
function memoryUsage() {
  try {
    return process.memoryUsage();
  } catch {
    return undefined;
  }
}

module.exports = { memoryUsage };
