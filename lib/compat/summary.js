'use strict';

// prom-client/lib/summary

module.exports = require('../metric/summary').Summary;
