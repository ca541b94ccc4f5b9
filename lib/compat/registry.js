'use strict';

// prom-client/lib/registry

const { Registry } = require('../registry/registry');

module.exports = Registry;
// Node's static analysis finds this name, so ES modules can import it, as from prom-client.
module.exports.globalRegistry = Registry.globalRegistry;
