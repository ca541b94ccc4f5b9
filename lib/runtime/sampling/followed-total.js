'use strict';

/**
 * Has a counter follow a total that somebody else keeps: the operating system, the runtime. The first time it takes
 * over all that was counted before; after a reset of the counter only what comes then.
 *
 * @param {import('../../metric/counter').Counter} counter
 * @param {Record<string, string | number>} labels
 * @returns {(total: number) => void} to be called with the total as it is now
 */
function followTotal(counter, labels) {
  let last = 0;
  return total => {
    // Never negative: a counter would refuse, and fail the scrape. A process that is moved to another control group
    // sees smaller totals.
    counter.inc(labels, Math.max(0, total - last));
    last = total;
  };
}

module.exports = { followTotal };
