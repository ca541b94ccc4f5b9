'use strict';

// prom-client/lib/registry

module.exports = require('../registry/registry').Registry;

// Never called. Node's static analysis of CommonJS exports finds this name here, so ES modules can import it,
// as from prom-client.
void ((/** @type {any} */ module, /** @type {any} */ globalRegistry) => {
  module.exports = { globalRegistry };
});
