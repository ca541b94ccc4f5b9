'use strict';

// prom-client/lib/metric

const base = require('../metric/metric');

/** The base class for metrics of applications: resets and registers what is derived from it. */
class Metric extends base.Metric {
  /**
   * @param {any} config
   * @param {Record<string, unknown>} [defaults] of options that only this type has
   */
  constructor(config, defaults = {}) {
    super(config, defaults);
    // The derived class may store anything in it; there is no table.
    Object.defineProperty(this, 'hashMap', {
      value: {},
      writable: true,
      enumerable: true,
      configurable: true,
    });
    this.reset();
    base.addToRegistries(this);
  }

  /**
   * For a derived class to override, after this constructor at the latest.
   *
   * @returns {Promise<any>}
   */
  async get() {
    throw new TypeError(`The class of the metric '${this.name}' has no get()`);
  }

  /** Called by the constructor, for a derived class to override. */
  reset() {}

  /**
   * @param {unknown} value
   * @returns {boolean} also for the metrics of this package
   */
  static [Symbol.hasInstance](value) {
    return this === Metric ? value instanceof base.Metric : super[Symbol.hasInstance](value);
  }
}

module.exports = { Metric };
