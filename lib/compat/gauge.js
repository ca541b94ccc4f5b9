'use strict';

// prom-client/lib/gauge

module.exports = require('../metric/gauge').Gauge;
