'use strict';

// Counts failures by stage and metric: those of one process in its snapshots, and those of the whole cluster.

const { SnapshotError } = require('./byte-buffers');
const { beginningOf } = require('../options/thrown');

// Usually few metrics fail. The limit bounds the memory if a program creates ever new names.
const MAX_KINDS = 1000;

// Failures are stored by name, even after their worker has died. Workers truncate longer names.
const MAX_NAME_CHARACTERS = 1000;

/** The stage of `collect` hooks. */
const COLLECT = 'collect';

/** The stage of ended series whose counts were dropped, because no request came in time. */
const ENDED = 'ended';

/** The stage of series that have expired: counted in the same way, but not failures. */
const EXPIRED = 'expired';

/** The stage under which further kinds of failures are counted together. */
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
   * Adds failures. If there are already many kinds, failures of a new kind are counted together.
   *
   * @param {string} stage
   * @param {string} name of the metric
   * @param {number} count
   */
  add(stage, name, count = 1) {
    const key = `${stage} ${name}`;
    const isRest = name === '' && (stage === OTHER || stage === EXPIRED);
    const failure = this.#counts.get(key);
    if (failure !== undefined) {
      failure[2] += count;
    } else if (this.#counts.size < MAX_KINDS || isRest) {
      this.#counts.set(key, [stage, name, count]);
    } else {
      this.add(stage === EXPIRED ? EXPIRED : OTHER, '', count);
    }
  }
}

/**
 * @param {import('./byte-buffers').ByteWriter} writer
 * @param {readonly Failure[]} failures
 */
function writeFailures(writer, failures) {
  writer.list(failures, ([stage, name, count]) => {
    writer.string(stage);
    writer.string(name);
    writer.float64(count);
  });
}

/**
 * @param {import('./byte-buffers').ByteReader} reader
 * @returns {Failure[]}
 * @throws {import('./byte-buffers').SnapshotError} if a count is not valid
 */
function readFailures(reader) {
  return reader.list(() => {
    const [stage, name, count] = [reader.string(), reader.string(), reader.float64()];
    if (!(count >= 0)) throw new SnapshotError('numbers', `${count} failures`);
    return [beginningOf(stage), beginningOf(name, MAX_NAME_CHARACTERS), count];
  });
}

module.exports = { COLLECT, ENDED, EXPIRED, FailureCounts, writeFailures, readFailures };
