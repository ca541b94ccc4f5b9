'use strict';

// prom-client/lib/util

const { hashObject } = require('../metric/hash-map');
const { labelsByPosition } = require('../metric/label-sets');

module.exports = { hashObject, getLabels: labelsByPosition };
