'use strict';

// prom-client/lib/timeWindowQuantiles

module.exports = require('../metric/time-window-quantiles').TimeWindowQuantiles;
