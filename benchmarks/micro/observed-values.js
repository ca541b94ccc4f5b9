'use strict';

const { randomFrom } = require('../shared/random.js');
const { OPERATIONS } = require('./label-strings.js');

const SEED = 15;

/**
 * Durations as services have them: most are short, few are long, so that all default buckets are met.
 *
 * @returns {Float64Array} one for each operation of a run, seconds
 */
function observedValues() {
  const random = randomFrom(SEED);
  return Float64Array.from({ length: OPERATIONS }, () => 0.002 * Math.exp(random() * 9));
}

module.exports = { observedValues };
