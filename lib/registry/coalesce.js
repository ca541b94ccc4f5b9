'use strict';

// Scrapes of one process share runs, as those of a cluster share rounds (cluster/primary/scrape-rounds.js),
// so many concurrent scrapers cost no more than two: `collect` hooks run once for all of them, and each
// format is written once.

const { TOO_MANY_SELECTIONS, hasTooManySelections } = require('../exposition/page-format');
const { unavailable } = require('./unavailable');
const { unref } = require('../event-loop/timers');

// A `collect` hook that never finishes must not delay scrapes forever: those that wait for a run of this age
// start another.
const HUNG_MILLISECONDS = 5000;

/** @typedef {import('../exposition/page-format').PageFormat} PageFormat */

/**
 * Makes concurrent calls for one registry share runs of a function.
 *
 * @param {(registry: any, formats: PageFormat[]) => Promise<Buffer[]>} run writes a page for each format
 * @returns {(registry: object, format: PageFormat) => Promise<Buffer>} rejects if concurrent calls have too
 *   many selections
 */
function coalesceByRegistry(run) {
  /** @type {WeakMap<object, ReturnType<typeof coalesce>>} */
  const pages = new WeakMap();
  return (registry, format) => {
    const page = pages.get(registry) ?? coalesce(formats => run(registry, formats));
    pages.set(registry, page);
    return page(format);
  };
}

/**
 * A call never shares a run that began before it, because the numbers of that run may be older than the call.
 * It gets the next one.
 *
 * @param {(formats: PageFormat[]) => Promise<Buffer[]>} run
 * @returns {(format: PageFormat) => Promise<Buffer>}
 */
function coalesce(run) {
  /** @type {Promise<void> | undefined} settles when the youngest run has ended or hangs */
  let ended;
  /**
   * @type {{formats: Map<string, PageFormat>, pages: Promise<Map<string, Buffer>>} | undefined} the run after
   *   it
   */
  let next;

  /** @param {Map<string, PageFormat>} formats by key */
  function start(formats) {
    next = undefined;
    const pages = run([...formats.values()]);
    /** @type {Promise<void>} */
    const own = new Promise(resolve => {
      const timer = unref(setTimeout(resolve, HUNG_MILLISECONDS));
      const stop = () => {
        clearTimeout(timer);
        resolve();
      };
      pages.then(stop, stop);
    });
    ended = own.then(() => {
      // Only the youngest run is followed, so none has replaced it.
      ended = undefined;
    });
    return pages.then(list => new Map(Array.from(formats.keys(), (key, i) => [key, list[i]])));
  }

  return async format => {
    const key = JSON.stringify(format);
    if (next === undefined && ended !== undefined) {
      /** @type {Map<string, PageFormat>} */
      const formats = new Map();
      next = { formats, pages: ended.then(() => start(formats)) };
    }
    if (next !== undefined && hasTooManySelections(next.formats.values(), format))
      throw unavailable(TOO_MANY_SELECTIONS);
    next?.formats.set(key, format);
    const pages = await (next?.pages ?? start(new Map([[key, format]])));
    return /** @type {Buffer} */ (pages.get(key));
  };
}

module.exports = { coalesceByRegistry };
