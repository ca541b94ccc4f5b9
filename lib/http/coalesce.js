'use strict';

// Scrapes of one process share renders, as those of a cluster share rounds
// (cluster/primary/scrape-rounds.js), so many concurrent scrapers cost no more than two.

// A `collect` hook that never finishes must not delay scrapes forever: those that wait for a render of this
// age start another.
const HUNG_MILLISECONDS = 5000;

/**
 * Makes concurrent calls of a function share its runs. A call never shares a run that began before it,
 * because the numbers of that run may be older than the call. It gets the next one.
 *
 * @template T
 * @param {() => Promise<T>} run
 * @returns {() => Promise<T>}
 */
function coalesce(run) {
  /** @type {Promise<void> | undefined} settles when the youngest run has ended or hangs */
  let ended;
  /** @type {Promise<T> | undefined} the run after it */
  let next;

  function start() {
    next = undefined;
    const result = run();
    /** @type {Promise<void>} */
    const own = new Promise(resolve => {
      const timer = setTimeout(resolve, HUNG_MILLISECONDS).unref();
      const stop = () => {
        clearTimeout(timer);
        resolve();
      };
      result.then(stop, stop);
    });
    ended = own.then(() => {
      // Only the youngest run is followed, so none has replaced it.
      ended = undefined;
    });
    return result;
  }

  return () => {
    if (next === undefined) {
      if (ended === undefined) return start();
      next = ended.then(start);
    }
    return next;
  };
}

module.exports = { coalesce };
