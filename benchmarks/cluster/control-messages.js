'use strict';

// The benchmark's own messages between its primary and workers travel over the same channel as the library's. They all
// begin with this key, so that the IPC meter can tell them apart by the first bytes of their JSON.

const CONTROL_KEY = 'bench';
const CONTROL_PREFIX = `{"${CONTROL_KEY}":`;

/**
 * @param {unknown} message
 * @returns {boolean}
 */
function isControl(message) {
  return typeof message === 'object' && message !== null && CONTROL_KEY in message;
}

module.exports = { CONTROL_PREFIX, isControl };
