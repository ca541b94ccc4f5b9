'use strict';

// Process warnings about options and calls that have no effect, or another one than was meant.

const { isProduction } = require('./environment');

const CODE = 'PROM_CLIENT_CLUSTER_OPTIONS';

/** @type {Set<string>} */
const warned = new Set();

/**
 * Emits a process warning, once per subject.
 *
 * @param {string} subject
 * @param {string} text
 * @param {string} [code]
 */
function warnOnce(subject, text, code = CODE) {
  if (warned.has(subject)) return;
  warned.add(subject);
  process.emitWarning(text, { code });
}

/**
 * The same for mistakes in the program's code: not in production.
 *
 * @param {string} subject
 * @param {string} text
 */
function adviseOnce(subject, text) {
  if (warned.has(subject)) return;
  // Reading the environment takes longer than many a call that is wrong.
  if (isProduction()) warned.add(subject);
  else warnOnce(subject, text);
}

module.exports = { warnOnce, adviseOnce };
