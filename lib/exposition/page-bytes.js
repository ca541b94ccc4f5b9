'use strict';

/** Property of a page: what callers need to know besides. */
const FACTS = Symbol.for('prom-client-cluster.page-facts.v1');

/** @typedef {(readonly [metric: string, count: number])[]} HookFailures */

/**
 * @typedef {object} PageFacts
 * @property {HookFailures} [hookFailures] how many `collect` hooks had failed in all processes by then
 * @property {boolean} [hasNative] whether the page has native histograms
 * @property {boolean} [isNothing] of an empty page: there are no metrics at all, not just none with the
 *   requested names
 */

/** @typedef {Buffer & {[FACTS]?: PageFacts}} PageBytes */

/**
 * Adds a property that is not enumerable, so code that prints or compares the page does not see it.
 *
 * @template {object} Page
 * @param {Page} page
 * @param {PageFacts} facts
 * @returns {Page & {[FACTS]: PageFacts}} the same page
 */
function withFacts(page, facts) {
  // Callers may share a page.
  return /** @type {any} */ (Object.defineProperty(page, FACTS, { value: facts, configurable: true }));
}

/**
 * @param {PageBytes | undefined} page
 * @returns {PageBytes} an empty one if there are no metrics
 */
function pageOrNothing(page) {
  return page ?? withFacts(Buffer.alloc(0), { isNothing: true });
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

module.exports = { FACTS, pageOrNothing, pageText, withFacts };
