'use strict';

// prom-client/lib/util

const { hashObject, labelSetOf } = require('../metric/label-sets');
const { isObject } = require('../metric/metric');

/**
 * @param {readonly string[]} labelNames
 * @param {any[]} args one object of labels, or all values in the order of `labelNames`
 * @returns {Record<string, any>}
 * @throws {Error} if there are more or fewer values than names
 */
function getLabels(labelNames, args) {
  return labelSetOf({ labelNames }, args);
}

module.exports = { hashObject, getLabels, isObject };
