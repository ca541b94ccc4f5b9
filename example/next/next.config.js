'use strict';

// The package is loaded from node_modules, so that all routes share one global registry.
module.exports = { serverExternalPackages: ['prom-client'] };
