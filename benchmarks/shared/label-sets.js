'use strict';

// The label sets of the workload, numbered: 4 methods x 5 statuses x 5 zones x as many routes as needed.
// Every worker has the same ones, like the workers of one service. The number can be computed from the
// labels, so the body check can give each series its own weight.

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
const STATUSES = ['200', '201', '304', '404', '500'];
const ZONES = ['eu-west-1a', 'eu-west-1b', 'eu-west-1c', 'us-east-1a', 'us-east-1b'];
const ROUTE_PREFIX = '/api/v1/resources/';

const LABEL_NAMES = ['method', 'route', 'status', 'zone'];

/**
 * @param {number} number
 * @returns {{method: string, route: string, status: string, zone: string}}
 */
function labelSet(number) {
  const method = METHODS[number % 4];
  const status = STATUSES[Math.floor(number / 4) % 5];
  const zone = ZONES[Math.floor(number / 20) % 5];
  return { method, route: `${ROUTE_PREFIX}${Math.floor(number / 100)}`, status, zone };
}

/**
 * The number of the label set that these labels are.
 *
 * @param {Record<string, string>} labels
 * @returns {number} NaN if they are none
 */
function labelSetNumber({ method, route, status, zone }) {
  const digits = [METHODS.indexOf(method), STATUSES.indexOf(status), ZONES.indexOf(zone)];
  if (digits.includes(-1) || !route?.startsWith(ROUTE_PREFIX)) return NaN;
  return digits[0] + 4 * digits[1] + 20 * digits[2] + 100 * Number(route.slice(ROUTE_PREFIX.length));
}

/**
 * The weight of a series in the weighted total, which detects two series whose values were swapped.
 *
 * @param {number} number of its label set
 * @returns {number} 1 to 997
 */
function weightOf(number) {
  return (number % 997) + 1;
}

module.exports = { LABEL_NAMES, labelSet, labelSetNumber, weightOf };
