'use strict';

/** Property of a page: how many `collect` hooks had failed in all processes by then. */
const HOOK_FAILURES = Symbol.for('prom-client-cluster.hook-failures.v1');

/** @typedef {(readonly [metric: string, count: number])[]} HookFailures */

/**
 * `ascii` means that each byte is one character.
 *
 * @typedef {{bytes: Buffer, ascii: boolean, [HOOK_FAILURES]?: HookFailures}} PageBytes
 */

/**
 * @param {import('./page').Body} body
 * @returns {PageBytes}
 */
function pageBytes({ buffer, length, ascii }) {
  return { bytes: Buffer.from(buffer, 0, length), ascii };
}

/**
 * Adds a property that code which prints or compares the page does not see.
 *
 * @template {object} Page
 * @param {Page} page
 * @param {HookFailures | undefined} failures
 * @returns {Page} the same page
 */
function withHookFailures(page, failures) {
  return Object.defineProperty(page, HOOK_FAILURES, { value: failures });
}

module.exports = { HOOK_FAILURES, pageBytes, withHookFailures };
