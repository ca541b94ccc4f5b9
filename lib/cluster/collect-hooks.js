'use strict';

// Runs the `collect` hooks of a worker's metrics. One that throws or never ends costs its own metric, whose last
// values stand, and never the scrape.

/** @typedef {(name: string, reason: unknown) => void} OnFailure */

class CollectHooks {
  /** @type {WeakSet<object>} metrics whose hook was called and has not ended */
  #running = new WeakSet();

  /**
   * Calls all hooks, and waits for them until the time is up.
   *
   * @param {Iterable<any>} metrics
   * @param {number} timeout milliseconds
   * @param {OnFailure} onFailure called once for each metric whose hook failed
   */
  async run(metrics, timeout, onFailure) {
    /** @type {Map<any, Promise<void>>} */
    const pending = new Map();
    for (const metric of metrics) {
      if (typeof metric.collect !== 'function') continue;
      if (this.#running.has(metric)) {
        onFailure(metric.name, 'its last collect has not ended');
        continue;
      }
      try {
        const result = metric.collect();
        if (typeof result?.then !== 'function') continue;
        this.#running.add(metric);
        pending.set(metric, this.#ended(metric, result, pending, onFailure));
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

module.exports = { CollectHooks };
