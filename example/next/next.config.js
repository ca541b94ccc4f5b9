'use strict';

// The package is loaded from node_modules. Without this line each route has a copy of it, which works as
// well, because the routes share one registry.
module.exports = { serverExternalPackages: ['prom-client'] };
