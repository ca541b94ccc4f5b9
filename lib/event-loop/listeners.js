'use strict';

// Listeners of emitters that all copies of this package in a process share. Where copies know nothing of each
// other, as those of the test files of Jest, each adds one. That is no leak, so each but the first also
// raises the limit above which Node.js warns. The first does not: an emitter whose limit was set once does
// not follow `events.defaultMaxListeners` any more, which the program may change.

/** Property of a listener that a copy of this package has added. */
const IS_OURS = Symbol.for('prom-client-cluster.listener.v1');

/** @typedef {import('node:events').EventEmitter} Emitter */

/**
 * @param {Emitter} emitter
 * @param {string} event
 * @param {(...args: any[]) => void} listener
 */
function listenTo(emitter, event, listener) {
  if (oursOf(emitter, event).length > 0) changeLimit(emitter, 1);
  emitter.on(event, Object.assign(listener, { [IS_OURS]: true }));
}

/**
 * @param {Emitter} emitter
 * @param {string} event
 * @param {(...args: any[]) => void} listener that listenTo() has added
 */
function stopListening(emitter, event, listener) {
  const ours = oursOf(emitter, event);
  emitter.removeListener(event, listener);
  if (ours.length > 1 && ours.includes(listener)) changeLimit(emitter, -1);
}

/**
 * @param {Emitter} emitter
 * @param {string} event
 * @returns {Function[]} those of all copies
 */
function oursOf(emitter, event) {
  // A stand-in for `cluster`, in tests, may have no list.
  const listeners = emitter.listeners?.(event) ?? [];
  return listeners.filter(listener => IS_OURS in listener);
}

/**
 * @param {Emitter} emitter
 * @param {number} change
 */
function changeLimit(emitter, change) {
  // 0 is no limit. A stand-in may have none, too.
  const limit = emitter.getMaxListeners?.();
  if (limit > 0) emitter.setMaxListeners(Math.max(limit + change, 1));
}

module.exports = { listenTo, stopListening };
