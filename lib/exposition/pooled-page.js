'use strict';

// Returns the buffer of a sent page to the aggregator thread, which writes a later page into it. Otherwise V8
// collects old pages only when they take some 64 MB on the primary's heap. Peak memory of the primary over
// HTTP, 4 workers, with and without the pool: 87 and 129 MiB after 65 scrapes of 10,000 samples (prom-client:
// 112 to 117 MiB), 147 and 213 MiB with 100,000 samples (row "peak memory of the primary, http" of
// benchmarks/cluster with --runs 60). Wall time and CPU are the same within noise.

/**
 * A method of a page: returns its buffer to the pool. This detaches the bytes, so a caller that still reads
 * them sees an empty buffer. Calling it is optional: a page that is not released is garbage-collected. The
 * symbol is the same in all copies of this package, because they share one primary.
 */
const RELEASE = Symbol.for('prom-client-cluster.release.v1');

/** Property of a page: how many `collect` hooks had failed in all processes by then. */
const HOOK_FAILURES = Symbol.for('prom-client-cluster.hook-failures.v1');

/** @typedef {(readonly [metric: string, count: number])[]} HookFailures */

/**
 * `ascii` means that each byte is one character.
 *
 * @typedef {{bytes: Buffer, ascii: boolean, [RELEASE]?: () => void, [HOOK_FAILURES]?: HookFailures}}
 *   PageBytes
 */

/**
 * @param {import('./page').Body} body
 * @param {(memory: ArrayBuffer) => void} [onReleased] called at most once; omitted if several callers share
 *   the page
 * @returns {PageBytes}
 */
function pooledPage({ buffer, length, ascii }, onReleased) {
  const page = { bytes: Buffer.from(buffer, 0, length), ascii };
  if (onReleased === undefined) return page;
  let isReleased = false;
  return hidden(page, RELEASE, () => {
    if (!isReleased) onReleased(buffer);
    isReleased = true;
  });
}

/**
 * @template {object} Page
 * @param {Page} page
 * @param {HookFailures | undefined} failures
 * @returns {Page} the same page
 */
function withHookFailures(page, failures) {
  return hidden(page, HOOK_FAILURES, failures);
}

/**
 * Adds a property that code which prints or compares the page does not see.
 *
 * @template {object} Page
 * @param {Page} page
 * @param {symbol} key
 * @param {unknown} value
 * @returns {Page} the same page
 */
function hidden(page, key, value) {
  return Object.defineProperty(page, key, { value });
}

module.exports = { RELEASE, HOOK_FAILURES, pooledPage, withHookFailures };
