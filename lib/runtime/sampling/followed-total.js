'use strict';

/**
 * Makes a counter follow a total that the operating system or the runtime counts. The first call adds the
 * whole total; after a reset of the counter, only what is counted from then on.
 *
 * @param {import('../../metric/counter').Counter} counter
 * @param {Record<string, string | number>} labels
 * @returns {(total: number) => void} to be called with the current total; NaN if it cannot be read
 */
function followTotal(counter, labels) {
  let last = 0;
  return total => {
    if (Number.isNaN(total)) return;
    // Never negative: the counter would throw, and fail the scrape. The totals fall when a process is moved
    // to another cgroup.
    counter.inc(labels, Math.max(0, total - last));
    last = total;
  };
}

module.exports = { followTotal };
