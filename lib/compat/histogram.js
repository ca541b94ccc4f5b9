'use strict';

// prom-client/lib/histogram

module.exports = require('../metric/histogram').Histogram;
