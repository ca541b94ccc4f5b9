'use strict';

// A page of many megabytes, made anew for each scrape, is garbage that the primary's collector finds late, and fresh
// memory costs the kernel more time (4 ms for 12 MB) than the text that is put in it. So the memory of a page that has
// been sent goes back to whoever writes the next.

/**
 * On what is lent: says that its holder has no use for it any more. From then on its bytes are not to be touched.
 * Whoever keeps them just does not call it. The same for all copies of this package, which share one primary.
 */
const RELEASE = Symbol.for('prom-client-cluster.release.v1');

/** @typedef {{bytes: Buffer, ascii: boolean, [RELEASE]: () => void}} LentBytes */

/**
 * Lends a page to several holders.
 *
 * @param {import('./page').Body} body
 * @param {number} holders
 * @param {(memory: ArrayBuffer) => void} onReturned called when all holders have released it
 * @returns {() => LentBytes} to be called once for each holder
 */
function lender({ buffer, length, ascii }, holders, onReturned) {
  const bytes = Buffer.from(buffer, 0, length);
  let left = holders;
  return () => {
    let isHeld = true;
    const lent = { bytes, ascii };
    // Not to be seen by who prints or compares the result.
    Object.defineProperty(lent, RELEASE, {
      value() {
        if (isHeld && --left === 0) onReturned(buffer);
        isHeld = false;
      },
    });
    return /** @type {LentBytes} */ (lent);
  };
}

module.exports = { RELEASE, lender };
