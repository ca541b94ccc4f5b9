'use strict';

// Runs the `collect` hooks of a worker's metrics. One that throws or never ends costs its own metric, whose last
// values stand, and never the scrape.

const DEFAULT_TIMEOUT = 5000;
const MAX_TIMEOUT = 600_000; // a message may say anything, and timers go wrong beyond 2^31 ms

/** @typedef {(name: string, reason: unknown) => void} OnFailure */

class CollectHooks {
  /** @type {WeakMap<object, Promise<void>>} metrics whose hook was called and has not ended */
  #running = new WeakMap();

  /**
   * Calls all hooks, and waits for them until the time is up.
   *
   * @param {Iterable<any>} metrics
   * @param {number} timeout milliseconds
   * @param {OnFailure} onFailure called once for each metric whose hook failed
   * @param {boolean} [isLast] whether to wait for hooks, too, that an earlier call has started: there will be no other
   */
  async run(metrics, timeout, onFailure, isLast = false) {
    /** @type {Map<any, Promise<void>>} */
    const pending = new Map();
    for (const metric of metrics) {
      if (typeof metric.collect !== 'function') continue;
      const running = this.#running.get(metric);
      if (running !== undefined && isLast) {
        pending.set(
          metric,
          running.finally(() => pending.delete(metric)),
        );
        continue;
      }
      if (running !== undefined) {
        onFailure(metric.name, 'its last collect has not ended');
        continue;
      }
      try {
        const result = metric.collect();
        if (typeof result?.then !== 'function') continue;
        const ended = this.#ended(metric, result, pending, onFailure);
        this.#running.set(metric, ended);
        pending.set(metric, ended);
      } catch (error) {
        onFailure(metric.name, error);
      }
    }
    if (pending.size === 0) return;
    await withinTime(Promise.all(pending.values()), timeout);
    for (const metric of pending.keys()) onFailure(metric.name, `its collect took longer than ${timeout} ms`);
    // One that fails later has been counted.
    pending.clear();
  }

  /**
   * @param {any} metric
   * @param {PromiseLike<unknown>} result
   * @param {Map<any, unknown>} pending
   * @param {OnFailure} onFailure
   */
  async #ended(metric, result, pending, onFailure) {
    try {
      await result;
    } catch (error) {
      if (pending.has(metric)) onFailure(metric.name, error);
    } finally {
      pending.delete(metric);
      this.#running.delete(metric);
    }
  }
}

/**
 * @param {Promise<unknown>} promise
 * @param {number} milliseconds
 * @returns {Promise<void>} settled when either is over
 */
function withinTime(promise, milliseconds) {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, milliseconds);
    timer.unref();
    promise.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/**
 * How long hooks may take of the time that the primary waits.
 *
 * @param {unknown} timeout milliseconds
 */
function hookTime(timeout) {
  const asked = typeof timeout === 'number' && timeout > 0 ? timeout : DEFAULT_TIMEOUT;
  const available = Math.min(asked, MAX_TIMEOUT);
  return available - Math.min(available / 4, 250);
}

module.exports = { CollectHooks, hookTime };
