'use strict';

// The buffer of a sent page is returned to the aggregator thread, which writes a later page into it. Without that, V8 lets
// some 64 MB of old pages pile up on the primary's heap before it collects them. Peak memory of the primary over HTTP, 4
// workers, with and without the pool: 87 and 129 MiB after 65 scrapes of 10,000 samples (prom-client: 112 to 117 MiB), 147
// and 213 MiB with 100,000 samples (row "peak memory of the primary, http" of benchmarks/cluster with --runs 60). Wall time
// and CPU are the same within noise.

/**
 * A method of a page: returns its buffer to the pool. The bytes are detached then, so a caller that still reads them sees
 * no bytes. It is optional: a page that is never released is garbage. The symbol is the same in all copies of this
 * package, which share one primary.
 */
const RELEASE = Symbol.for('prom-client-cluster.release.v1');

/** @typedef {{bytes: Buffer, ascii: boolean, [RELEASE]?: () => void}} PageBytes `ascii`: each byte is one character */

/**
 * @param {import('./page').Body} body
 * @param {(memory: ArrayBuffer) => void} [onReleased] called at most once; omitted if several callers share the page
 * @returns {PageBytes}
 */
function pooledPage({ buffer, length, ascii }, onReleased) {
  const page = { bytes: Buffer.from(buffer, 0, length), ascii };
  if (onReleased === undefined) return page;
  let isReleased = false;
  // Not enumerable, so that callers who print or compare the page do not see it.
  Object.defineProperty(page, RELEASE, {
    value() {
      if (!isReleased) onReleased(buffer);
      isReleased = true;
    },
  });
  return page;
}

module.exports = { RELEASE, pooledPage };
