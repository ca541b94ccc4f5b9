'use strict';

// Failures by stage and metric: those of one process, in its snapshots, and those of the whole cluster.

// Usually few metrics fail. The limit bounds the memory if programs create names without end.
const MAX_KINDS = 1000;

/** The stage of failures that are counted together. */
const OTHER = 'other';

/** @typedef {readonly [stage: string, name: string, count: number]} Failure `name`: the metric's */

class FailureCounts {
  /** @type {Map<string, [stage: string, name: string, count: number]>} */
  #counts = new Map();

  /** @param {Iterable<Failure>} [failures] to begin with */
  constructor(failures = []) {
    for (const failure of failures) this.add(...failure);
  }

  /** @returns {Failure[]} */
  get entries() {
    return [...this.#counts.values()];
  }

  /**
   * Adds failures. Those of a new kind are counted together if there are many kinds already.
   *
   * @param {string} stage
   * @param {string} name of the metric
   * @param {number} count
   */
  add(stage, name, count = 1) {
    const key = `${stage} ${name}`;
    const failure = this.#counts.get(key);
    if (failure !== undefined) {
      failure[2] += count;
    } else if (this.#counts.size < MAX_KINDS || (stage === OTHER && name === '')) {
      this.#counts.set(key, [stage, name, count]);
    } else {
      this.add(OTHER, '', count);
    }
  }
}

module.exports = { FailureCounts };
