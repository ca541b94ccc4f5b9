'use strict';

// prom-client/lib/pushgateway

module.exports = require('../pushgateway').Pushgateway;
