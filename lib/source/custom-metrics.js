'use strict';

// Runs in any process that records. Custom metric objects, which an application registers beside metrics of
// this library. What their get() returns is read as if that were a `collect` hook, and is sent as JSON.

const { stringifyJson } = require('./columns-encoder');

/** @typedef {{name: string, collect: () => Promise<void> | void}} Hook */

class CustomMetrics {
  /** @type {WeakMap<object, string>} by metric: what its get() returned last */
  #lastJson = new WeakMap();
  /** @type {WeakMap<object, Hook>} by metric */
  #hooks = new WeakMap();

  /**
   * @param {any} metric
   * @returns {string | undefined} what its get() returned last; undefined if it never has
   */
  jsonOf(metric) {
    return this.#lastJson.get(metric);
  }

  /**
   * @param {any} metric
   * @returns {Hook} the same object each time, by which CollectHooks knows whether it is running
   */
  hookOf(metric) {
    let hook = this.#hooks.get(metric);
    if (hook === undefined) {
      hook = { name: metric.name, collect: () => this.#read(metric) };
      this.#hooks.set(metric, hook);
    }
    return hook;
  }

  /** @param {any} metric */
  #read(metric) {
    // Encoded here: the program may change the object before the capture, and an error affects only this
    // metric.
    const encode = (/** @type {unknown} */ json) => {
      if (json != null) this.#lastJson.set(metric, stringifyJson(json));
    };
    const json = metric.get();
    return typeof json?.then === 'function' ? Promise.resolve(json).then(encode) : encode(json);
  }
}

module.exports = { CustomMetrics };
