'use strict';

// Runs in any process that records. Custom metric objects, which an application registers beside metrics of
// this library. Their get() is called like a `collect` hook, and its result is sent as JSON.

const { stringifyJson } = require('./columns-encoder');

/** Property of a mirror of another thread's custom metric object: the last result of its get(), as JSON. */
const JSON_TEXT = Symbol.for('prom-client-cluster.json-text.v1');

/** @typedef {{name: string, collect: () => Promise<void> | void}} Hook */

class CustomMetrics {
  /** @type {WeakMap<object, string>} by metric: the last result of its get() */
  #lastJson = new WeakMap();
  /** @type {WeakMap<object, Hook>} by metric */
  #hooks = new WeakMap();

  /**
   * @param {any} metric
   * @returns {string | undefined} the last result of its get(); undefined if there is none
   */
  jsonOf(metric) {
    return metric[JSON_TEXT] ?? this.#lastJson.get(metric);
  }

  /**
   * @param {any} metric
   * @returns {Hook} always the same object, so that CollectHooks knows whether it is running
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

module.exports = { CustomMetrics, JSON_TEXT };
