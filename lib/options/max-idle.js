'use strict';

// The option maxIdleSeconds of metrics, and of registries.

const { invalidOption } = require('./coded-error');
const { printed } = require('./thrown');
const { warnOnce } = require('./warnings');

/** A series that is recorded seldom would come and go between scrapes: at most 1 minute is usual. */
const SHORT_SECONDS = 120;

/**
 * @param {unknown} seconds
 * @returns {number} the same
 * @throws {RangeError} if it is not a positive finite number
 */
function checkedMaxIdle(seconds) {
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds < Infinity))
    throw invalidOption(`maxIdleSeconds must be a positive finite number: ${printed(seconds)}`, RangeError);
  if (seconds < SHORT_SECONDS)
    warnOnce(
      'maxIdleSeconds',
      `maxIdleSeconds of ${seconds} is shorter than a few scrapes: series that are in use may leave the page`,
    );
  return seconds;
}

module.exports = { checkedMaxIdle };
