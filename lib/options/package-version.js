'use strict';

// The version in package.json, which is not part of a bundle. The primary and the thread, which an
// application bundles separately, compare their versions.

module.exports = { PACKAGE_VERSION: '15.2.0' };
