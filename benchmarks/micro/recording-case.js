'use strict';

const { OPERATIONS } = require('./label-strings.js');
const { nanosecondsPerOperation } = require('./timing.js');

/** @typedef {import('./timing.js').Recording} Recording */

/**
 * A case that times an operation of nanoseconds.
 *
 * @param {string} key
 * @param {string} title
 * @param {(library: any) => Omit<Recording, 'operations'>} prepare creates the metric; a call of `run`
 *   performs OPERATIONS
 */
function recordingCase(key, title, prepare) {
  const measure = async ({ library, seconds }) => ({
    time: await nanosecondsPerOperation({ operations: OPERATIONS, ...prepare(library) }, seconds),
  });
  return { key, title, figures: { time: 'ns' }, measure };
}

module.exports = { recordingCase };
