'use strict';

/** Property of a page: how many `collect` hooks had failed in all processes by then. */
const HOOK_FAILURES = Symbol.for('prom-client-cluster.hook-failures.v1');

/** Property of a page: whether it has native histograms. */
const HAS_NATIVE = Symbol.for('prom-client-cluster.has-native.v1');

/** @typedef {(readonly [metric: string, count: number])[]} HookFailures */

/** @typedef {{[HOOK_FAILURES]?: HookFailures, [HAS_NATIVE]?: boolean}} PageFacts */

/**
 * `ascii` means that each byte is one character.
 *
 * @typedef {{bytes: Buffer, ascii: boolean} & PageFacts} PageBytes
 */

/**
 * @param {import('./page').Body} body
 * @returns {PageBytes}
 */
function pageBytes({ buffer, length, ascii }) {
  return { bytes: Buffer.from(buffer, 0, length), ascii };
}

/**
 * Adds properties that code which prints or compares the page does not see.
 *
 * @template {object} Page
 * @param {Page} page
 * @param {PageFacts} facts
 * @returns {Page & PageFacts} the same page
 */
function withFacts(page, facts) {
  for (const key of [HOOK_FAILURES, HAS_NATIVE]) {
    Object.defineProperty(page, key, { value: /** @type {any} */ (facts)[key] });
  }
  return page;
}

/**
 * @param {PageBytes} page
 * @param {import('./formats').Format} format
 * @returns {string} its text; its bytes if the format is not text
 */
function pageText({ bytes, ascii }, { isBinary }) {
  if (isBinary) return /** @type {any} */ (bytes);
  // Decoding latin1 is several times faster, and the same for pure ASCII.
  return bytes.toString(ascii ? 'latin1' : 'utf8');
}

module.exports = { HOOK_FAILURES, HAS_NATIVE, pageBytes, pageText, withFacts };
