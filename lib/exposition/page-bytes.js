'use strict';

/** Property of a page: how many `collect` hooks had failed in all processes by then. */
const HOOK_FAILURES = Symbol.for('prom-client-cluster.hook-failures.v1');

/** Property of a page: whether it has native histograms. */
const HAS_NATIVE = Symbol.for('prom-client-cluster.has-native.v1');

/** Property of an empty page: there are no metrics at all, not just none with the requested names. */
const IS_NOTHING = Symbol.for('prom-client-cluster.is-nothing.v1');

/** @typedef {(readonly [metric: string, count: number])[]} HookFailures */

/** @typedef {{[HOOK_FAILURES]?: HookFailures, [HAS_NATIVE]?: boolean, [IS_NOTHING]?: boolean}} PageFacts */

/** @typedef {Buffer & PageFacts} PageBytes */

/**
 * Adds properties that are not enumerable, so code that prints or compares the page does not see them.
 *
 * @template {object} Page
 * @param {Page} page
 * @param {PageFacts} facts
 * @returns {Page & PageFacts} the same page
 */
function withFacts(page, facts) {
  for (const key of Object.getOwnPropertySymbols(facts)) {
    // Callers may share a page.
    Object.defineProperty(page, key, { value: /** @type {any} */ (facts)[key], configurable: true });
  }
  return page;
}

/**
 * @param {PageBytes | undefined} page
 * @returns {PageBytes} an empty one if there are no metrics
 */
function pageOrNothing(page) {
  return page ?? withFacts(Buffer.alloc(0), { [IS_NOTHING]: true });
}

/**
 * @param {Buffer} bytes
 * @param {import('./formats').Format} format
 * @returns {string} its text; the bytes if the format is not text
 */
function pageText(bytes, { isBinary }) {
  if (isBinary) return /** @type {any} */ (bytes);
  // Small pages need nothing of Node.js.
  const { isAscii } = require('node:buffer');
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
}

module.exports = { HOOK_FAILURES, HAS_NATIVE, IS_NOTHING, pageOrNothing, pageText, withFacts };
