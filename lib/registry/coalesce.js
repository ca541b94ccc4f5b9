'use strict';

// Scrapes of one process share runs, as those of a cluster share rounds (cluster/primary/scrape-rounds.js):
// `collect` hooks run once for all of them, and each format is written once.

const { TOO_MANY_SELECTIONS, hasTooManySelections } = require('../exposition/page-format');
const { unavailable } = require('./unavailable');
const { Batches } = require('../event-loop/batches');

// A `collect` hook that never finishes must not delay scrapes forever.
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
  /** @type {WeakMap<object, (format: PageFormat) => Promise<Buffer>>} */
  const pages = new WeakMap();
  return (registry, format) => {
    let page = pages.get(registry);
    if (page === undefined) {
      page = coalesce(formats => {
        const written = run(registry, formats);
        return formats.map(async (_, i) => (await written)[i]);
      }, HUNG_MILLISECONDS);
      pages.set(registry, page);
    }
    return page(format);
  };
}

/**
 * @template {PageFormat} F
 * @template P
 * @param {(formats: F[]) => Promise<P>[]} run returns a page for each of several different formats
 * @param {number} milliseconds calls do not wait longer for the end of a run that began before them
 * @returns {(format: F) => Promise<P>} rejects if concurrent calls have too many selections
 */
function coalesce(run, milliseconds) {
  /** @type {Batches<{format: F, resolve: (page: Promise<P>) => void}>} */
  const calls = new Batches(async batch => {
    const formats = new Map(batch.map(({ format }) => [JSON.stringify(format), format]));
    const written = run([...formats.values()]);
    const keys = [...formats.keys()];
    for (const { format, resolve } of batch) resolve(written[keys.indexOf(JSON.stringify(format))]);
    await Promise.allSettled(written);
  }, milliseconds);
  return async format => {
    const others = Array.from(calls.waiting, call => call.format);
    if (hasTooManySelections(others, format)) throw unavailable(TOO_MANY_SELECTIONS);
    return new Promise(resolve => calls.add({ format, resolve }));
  };
}

module.exports = { coalesce, coalesceByRegistry };
