'use strict';

// prom-client/lib/util

const { hashObject } = require('../metric/hash-map');
const { labelsByPosition } = require('../metric/label-sets');
const { isObject } = require('../metric/metric');

module.exports = { hashObject, getLabels: labelsByPosition, isObject };
