'use strict';

const { randomFrom } = require('../shared/random.js');
const { OPERATIONS } = require('./label-strings.js');

const SEED = 15;

/**
 * Durations as in a service: most are short, few are long, and every default bucket gets some.
 *
 * @returns {Float64Array} one for each operation of a run, seconds
 */
function observedValues() {
  const random = randomFrom(SEED);
  return Float64Array.from({ length: OPERATIONS }, () => 0.002 * Math.exp(random() * 9));
}

module.exports = { observedValues };
