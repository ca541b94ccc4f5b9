'use strict';

// Listeners of emitters that all copies of this package in a process share. Where copies know nothing of each
// other, as those of the test files of Jest, each adds one. That is no leak, so each also raises the limit
// above which Node.js warns.

/** @typedef {import('node:events').EventEmitter} Emitter */

/**
 * @param {Emitter} emitter
 * @param {string} event
 * @param {(...args: any[]) => void} listener
 */
function listenTo(emitter, event, listener) {
  changeLimit(emitter, 1);
  emitter.on(event, listener);
}

/**
 * @param {Emitter} emitter
 * @param {string} event
 * @param {(...args: any[]) => void} listener that listenTo() has added
 */
function stopListening(emitter, event, listener) {
  const isAdded = emitter.listeners?.(event)?.includes(listener);
  emitter.removeListener(event, listener);
  if (isAdded) changeLimit(emitter, -1);
}

/**
 * @param {Emitter} emitter
 * @param {number} change
 */
function changeLimit(emitter, change) {
  // A stand-in for `cluster`, in tests, may have no limit. 0 is none, too.
  const limit = emitter.getMaxListeners?.();
  if (limit > 0) emitter.setMaxListeners(Math.max(limit + change, 1));
}

module.exports = { listenTo, stopListening };
