'use strict';

// What `collect` hooks have recorded in the last scrape does not expire, however rare scrapes are: see
// expiring-table.js. Recordings of the application while an asynchronous hook runs cannot be distinguished
// from those of the hook.

const { idleClock } = require('../event-loop/idle-clock');

/**
 * Property of a metric: its table, if its rows expire. A registered symbol, like those of
 * registry/metric-view.js.
 */
const EXPIRING = Symbol.for('prom-client-cluster.expiring.v1');

const hooks = {
  /** Number of hooks that are running. */
  running: 0,
  /** Number of them that have not returned yet: the others are asynchronous. */
  called: 0,
  /** When an asynchronous hook was last called, by idleClock. */
  lastCall: 0,
};

/** @param {any} metric that a scrape is about to read; to be called before its hook is */
function scrapeStarts(metric) {
  metric[EXPIRING]?.scrapeStarts();
}

/**
 * @template T
 * @param {() => T} call calls a hook
 * @returns {T} what it returns; a promise of that if it is asynchronous
 */
function runHook(call) {
  /** @type {any} */
  let result;
  hooks.running++;
  hooks.called++;
  try {
    result = call();
  } finally {
    hooks.called--;
    hooks.running--;
  }
  if (typeof result?.then !== 'function') return result;
  hooks.running++;
  hooks.lastCall = idleClock.now();
  // then() is called only once, because some objects start their work again with each call.
  result = Promise.resolve(result);
  const onEnd = () => void hooks.running--;
  result.then(onEnd, onEnd);
  return result;
}

module.exports = { EXPIRING, hooks, scrapeStarts, runHook };
