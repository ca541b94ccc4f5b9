'use strict';

/**
 * Lets the process end before the timer fires. Where an environment replaces timers (jsdom, a polyfill), they
 * may be numbers.
 *
 * @template T
 * @param {T} timer
 * @returns {T}
 */
function unref(timer) {
  /** @type {any} */ (timer)?.unref?.();
  return timer;
}

module.exports = { unref };
