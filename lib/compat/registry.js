'use strict';

// prom-client/lib/registry

module.exports = require('../registry/registry').Registry;

// Never called. Node's static analysis of CommonJS exports finds the name of the static member here, so ES
// modules can import it.
void ((/** @type {any} */ module, /** @type {any} */ globalRegistry) => {
  module.exports = { globalRegistry };
});
