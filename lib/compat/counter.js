'use strict';

// prom-client/lib/counter

module.exports = require('../metric/counter').Counter;
