'use strict';

// Runs in any process that records. What has failed in captures of this process, by stage and metric. Each
// snapshot contains the counts.

const { debug } = require('../../options/debug-log');

// Usually few metrics fail. The limits bound the memory if a program generates names.
const MAX_KINDS = 1000;
const MAX_NAME_LENGTH = 1000;

class FailureCounts {
  /** @type {Map<string, [stage: string, name: string, count: number]>} */
  #counts = new Map();

  /** @returns {[stage: string, name: string, count: number][]} */
  get entries() {
    return [...this.#counts.values()];
  }

  /**
   * @param {string} stage
   * @param {unknown} metric the metric's name, '' for none; a custom metric object may have anything as its
   *   name
   * @param {unknown} reason for the debug log
   */
  add(stage, metric, reason) {
    debug('%s %O failed: %O', stage, metric, reason);
    const name = typeof metric === 'string' ? metric.slice(0, MAX_NAME_LENGTH) : `a ${typeof metric} as name`;
    const key = `${stage} ${name}`;
    const failure = this.#counts.get(key);
    if (failure !== undefined) failure[2]++;
    else if (this.#counts.size < MAX_KINDS) this.#counts.set(key, [stage, name, 1]);
  }
}

module.exports = { FailureCounts };
