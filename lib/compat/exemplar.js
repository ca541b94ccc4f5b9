'use strict';

// prom-client/lib/exemplar

module.exports = require('../metric/exemplar').Exemplar;
