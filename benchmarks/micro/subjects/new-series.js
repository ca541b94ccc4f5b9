'use strict';

const { processorWait } = require('../../shared/processor-wait.js');
const { nextTurn } = require('../timing.js');
const { sumOf } = require('../recorded.js');
const { LABEL_NAMES, labelSet } = require('../../shared/label-sets.js');

const CHUNK = 1000;
const SLOW = 1; // ms; a call that takes longer may have waited for a processor

/** Times consecutive calls, without the time in which they waited for a CPU. */
class TimedCalls {
  total = 0; // ms
  longest = 0; // ms
  #last = 0;
  #waited = 0;

  begin() {
    this.#waited = processorWait();
    this.#last = performance.now();
  }

  end() {
    const now = performance.now();
    const duration = now - this.#last;
    this.#last = now;
    // The thread may have waited also between the call and the reading of its account.
    this.#add(duration > SLOW ? Math.max(duration - this.#waitOfCall(), 0) : duration);
  }

  /** Earlier waits belong to earlier calls. */
  #waitOfCall() {
    const waitedBefore = this.#waited;
    this.begin();
    return this.#waited - waitedBefore;
  }

  #add(duration) {
    this.total += duration;
    this.longest = Math.max(this.longest, duration);
  }
}

/** Label sets are created in chunks between the timed calls, as by requests, and not retained. */
function creating(size, labelsOf = labelSet) {
  return async ({ library }) => {
    const counter = new library.Counter({
      name: 'requests_total',
      help: 'Requests',
      labelNames: LABEL_NAMES,
    });
    const calls = new TimedCalls();
    for (let from = 0; from < size; from += CHUNK) {
      const sets = Array.from({ length: CHUNK }, (_, offset) => labelsOf(from + offset));
      calls.begin();
      for (const labels of sets) {
        counter.inc(labels);
        calls.end();
      }
      await nextTurn();
    }
    const recorded = await sumOf(counter);
    if (recorded !== size) throw new Error(`${size} series were created, the library has ${recorded}`);
    return { mean: (calls.total * 1e6) / size, longest: calls.longest };
  };
}

const figures = { mean: 'ns', longest: 'ms' };

module.exports = {
  title: 'New series',
  note: 'A counter with four labels grows; each `inc(labels)` creates a series. The longest single call includes garbage collection, but (on Linux) not the wait for a CPU on a busy machine. Each call is timed by itself, so the mean includes reading the clock.',
  cases: [
    { key: '100k', title: '100,000 series', figures, measure: creating(100_000) },
    {
      key: '100k-values',
      title: '100,000 series, each with a label value of its own',
      figures,
      measure: creating(100_000, number => ({ ...labelSet(number), route: `/users/${number}` })),
    },
    { key: '1m', title: 'a million series', figures, seconds: 20, measure: creating(1_000_000) },
  ],
};
