'use strict';

// prom-client/lib/util

const { hashObject } = require('../metric/hash-map');

module.exports = { hashObject };
