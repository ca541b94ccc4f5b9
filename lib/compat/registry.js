'use strict';

// prom-client/lib/registry

module.exports = require('../registry').Registry;
