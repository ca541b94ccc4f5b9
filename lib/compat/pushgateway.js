'use strict';

// prom-client/lib/pushgateway

module.exports = require('../http/pushgateway').Pushgateway;
