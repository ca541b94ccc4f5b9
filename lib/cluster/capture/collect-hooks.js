'use strict';

// Runs the `collect` hooks of a process's metrics, on its event loop. A hook that throws or never ends
// affects its own metric only: the scrape shows that metric's last values.

const { settledWithin } = require('../../event-loop/timers');

const DEFAULT_TIMEOUT = 5000;
const MAX_TIMEOUT = 600_000; // the timeout comes from a message and may be any number; timers overflow beyond 2^31 ms

/** @typedef {(name: string, reason: unknown) => void} OnFailure */

class CollectHooks {
  /** @type {WeakMap<object, Promise<void>>} metrics whose hook is running */
  #running = new WeakMap();

  /**
   * Calls all hooks.
   *
   * @param {Iterable<any>} metrics
   * @param {number} timeout milliseconds
   * @param {OnFailure} onFailure called once for each metric whose hook failed
   * @param {boolean} [isLast] whether this is the last call: it also waits for hooks that an earlier call has
   *   started
   * @returns {{pending: ReadonlySet<any>, ended: Promise<void>} | undefined} undefined if all hooks have
   *   ended; else the metrics whose hooks have not, and a promise that is resolved when they have, or after
   *   the timeout
   */
  run(metrics, timeout, onFailure, isLast = false) {
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
        onFailure(metric.name, 'its previous collect is still running');
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
    if (pending.size === 0) return undefined;
    return { pending: new Set(pending.keys()), ended: this.#allEnded(pending, timeout, onFailure) };
  }

  /**
   * @param {Map<any, Promise<void>>} pending
   * @param {number} timeout milliseconds
   * @param {OnFailure} onFailure
   */
  async #allEnded(pending, timeout, onFailure) {
    await settledWithin(Promise.all(pending.values()), timeout, { mayEnd: true });
    for (const metric of pending.keys()) onFailure(metric.name, `its collect took longer than ${timeout} ms`);
    // They have been counted: a hook that fails later is not counted again.
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
