'use strict';

// Process warnings about options and calls that have no effect, or not the intended one.

const { isProduction } = require('./environment');
const { printed } = require('./thrown');

const CODE = 'PROM_CLIENT_CLUSTER_OPTIONS';
const CODE_OF_CALLS = 'PROM_CLIENT_CLUSTER_CALLS';

/** The directory of the library. A bundle does not say which lines are the library's. */
const LIBRARY = typeof __dirname === 'string' ? /^.*(?=[\\/]options$)/.exec(__dirname)?.[0] : undefined;

/** The default of 10 is less than what is between a default metric and its program. */
const MOST_LINES = 30;

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
  // Missing in browsers.
  globalThis.process?.emitWarning?.(text, { code });
}

/**
 * The same for mistakes in the program's code: not in production.
 *
 * @param {string} subject
 * @param {string} text
 */
function adviseOnce(subject, text) {
  if (warned.has(subject)) return;
  // Remembered, because reading the environment takes longer than many of these calls.
  if (isProduction()) warned.add(subject);
  else warnOnce(subject, text);
}

/**
 * Warns of a call that prom-client accepts and whose result would be of no use: once per metric, with the
 * line of the program that made the first one. Never throws: it stands for an error that is not thrown.
 *
 * @param {string} subject `Metric NAME`, or the function
 * @param {string} problem
 * @param {unknown} value that was given
 */
function warnOfCall(subject, problem, value) {
  // Printing takes longer than many of these calls.
  if (!warned.has(subject))
    warnOnce(subject, `${subject}: ${problem}: ${printed(value)}${callerLine()}`, CODE_OF_CALLS);
}

/** @returns {string} the line of the stack that called the library; empty if it is not known */
function callerLine() {
  try {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = MOST_LINES;
    const error = new Error();
    Error.stackTraceLimit = stackTraceLimit;
    const lines = String(error.stack).split('\n').slice(1);
    const line = lines.find(text => LIBRARY !== undefined && !text.includes(LIBRARY));
    return line === undefined ? '' : `, first ${line.trim()}`;
  } catch {
    return '';
  }
}

module.exports = { warnOnce, adviseOnce, warnOfCall };
