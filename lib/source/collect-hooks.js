'use strict';

// Runs the `collect` hooks of a process's metrics, on its event loop. A hook that throws or never ends
// affects only its own metric: the scrape shows that metric's last values.
//
// As for pages (registry/coalesce.js), a call never shares a run of a hook that started before the call,
// because the run's numbers may be older. The call waits for that run to end, and shares the next one with
// all other waiting calls.

const { settledWithin } = require('../event-loop/timers');
const { scrapeStarts, runHook } = require('../series/hook-recordings');

const DEFAULT_TIMEOUT = 5000;
const MAX_TIMEOUT = 600_000; // the timeout comes from a message and may be any number; timers overflow beyond 2^31 ms

// Timeouts that differ by at most this much count as equal, because a scrape may ask this long after its
// call.
const MAX_MARGIN_MILLISECONDS = 250;

/** @typedef {(name: string, reason: unknown) => void} OnFailure */

/**
 * A run of a hook that has not ended.
 *
 * @typedef {object} Run
 * @property {Promise<void>} ended rejects if the hook fails
 * @property {number} longestWait the longest time for which a call has waited in vain, milliseconds
 */

class CollectHooks {
  /** @type {WeakMap<object, Run>} by metric */
  #running = new WeakMap();

  /**
   * Calls all hooks. A hook that is still running is called again when it has ended, unless another call with
   * about the same timeout has already waited for it in vain.
   *
   * @param {Iterable<any>} metrics
   * @param {number} timeout milliseconds
   * @param {OnFailure} onFailure called once for each metric whose hook failed
   * @returns {Promise<void> | undefined} undefined if all hooks have ended; otherwise resolves when they have
   *   ended, or after the timeout
   */
  run(metrics, timeout, onFailure) {
    /** @type {Map<any, Promise<unknown>>} */
    const pending = new Map();
    for (const metric of metrics) {
      scrapeStarts(metric);
      if (typeof metric.collect !== 'function') continue;
      const running = this.#running.get(metric);
      if (running !== undefined && !isLonger(timeout, running.longestWait)) {
        onFailure(metric.name, 'its previous collect is still running');
        continue;
      }
      try {
        const isAwaited = () => pending.has(metric);
        const ended =
          running === undefined ? this.#start(metric) : this.#startAfter(running, metric, isAwaited);
        if (ended === undefined) continue;
        const onEnd = () => pending.delete(metric);
        pending.set(
          metric,
          ended.then(onEnd, error => onEnd() && onFailure(metric.name, error)),
        );
      } catch (error) {
        onFailure(metric.name, error);
      }
    }
    return pending.size === 0 ? undefined : this.#allEnded(pending, timeout, onFailure);
  }

  /**
   * @param {Map<any, Promise<unknown>>} pending
   * @param {number} timeout milliseconds
   * @param {OnFailure} onFailure
   */
  async #allEnded(pending, timeout, onFailure) {
    await settledWithin(Promise.all([...pending.values()]), timeout, { mayEnd: true });
    for (const metric of pending.keys()) {
      onFailure(metric.name, `its collect took longer than ${timeout} ms`);
      const run = this.#running.get(metric);
      if (run !== undefined) run.longestWait = Math.max(run.longestWait, timeout);
    }
    // Timeouts have been counted as failures: a hook that fails later is not counted again.
    pending.clear();
  }

  /**
   * @param {any} metric
   * @returns {Promise<void> | undefined} undefined if it has ended
   * @throws {unknown} anything that the hook throws
   */
  #start(metric) {
    const result = runHook(() => metric.collect());
    if (typeof result?.then !== 'function') return undefined;
    const ended = this.#untilEnded(metric, result);
    this.#running.set(metric, { ended, longestWait: 0 });
    return ended;
  }

  /**
   * @param {any} metric
   * @param {PromiseLike<unknown>} result
   */
  async #untilEnded(metric, result) {
    try {
      await result;
    } finally {
      this.#running.delete(metric);
    }
  }

  /**
   * @param {Run} run
   * @param {any} metric
   * @param {() => boolean} isAwaited whether the call is still waiting
   */
  async #startAfter({ ended }, metric, isAwaited) {
    await ended.catch(() => {});
    // The first of the waiting calls starts the hook for all of them.
    if (isAwaited()) await (this.#running.get(metric)?.ended ?? this.#start(metric));
  }
}

/**
 * @param {number} timeout
 * @param {number} longestWait
 * @returns {boolean} whether a scrape waits considerably longer than others have
 */
function isLonger(timeout, longestWait) {
  return timeout > longestWait + Math.min(MAX_MARGIN_MILLISECONDS, longestWait / 2);
}

/**
 * The part of the primary's timeout that hooks may take. The rest is for writing and sending the snapshot.
 *
 * @param {unknown} timeout milliseconds
 * @returns {number} milliseconds
 */
function hookTime(timeout) {
  const asked = typeof timeout === 'number' && timeout > 0 ? timeout : DEFAULT_TIMEOUT;
  const available = Math.min(asked, MAX_TIMEOUT);
  return available - Math.min(available / 4, 250);
}

module.exports = { CollectHooks, hookTime };
