'use strict';

const { nextTurn } = require('../timing.js');
const { sumOf } = require('../recorded.js');
const { LABEL_NAMES, labelSet } = require('../../shared/label-sets.js');

const CHUNK = 1000;

/** Label sets are made in chunks between the calls that are timed, as requests bring them, and not kept. */
function creating(size) {
  return async ({ library }) => {
    const counter = new library.Counter({
      name: 'requests_total',
      help: 'Requests',
      labelNames: LABEL_NAMES,
    });
    let total = 0;
    let longest = 0;
    for (let from = 0; from < size; from += CHUNK) {
      const sets = Array.from({ length: CHUNK }, (_, offset) => labelSet(from + offset));
      const began = performance.now();
      let last = began;
      for (const labels of sets) {
        counter.inc(labels);
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
      }
      total += last - began;
      await nextTurn();
    }
    const recorded = await sumOf(counter);
    if (recorded !== size) throw new Error(`${size} series were created, the library has ${recorded}`);
    return { mean: (total * 1e6) / size, longest };
  };
}

const figures = { mean: 'ns', longest: 'ms' };

module.exports = {
  title: 'New series',
  note: 'A counter with four labels grows; each `inc(labels)` creates a series. The longest single call contains collections of garbage and, on a busy machine, the wait for a processor. Each call is timed by itself, so the mean contains a look at the clock.',
  cases: [
    { key: '100k', title: '100,000 series', figures, measure: creating(100_000) },
    { key: '1m', title: 'a million series', figures, seconds: 20, measure: creating(1_000_000) },
  ],
};
