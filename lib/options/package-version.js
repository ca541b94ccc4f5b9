'use strict';

// That of package.json, which a bundle does not contain. The primary's code and that of the thread, which an
// application bundles apart from each other, compare it.

module.exports = { PACKAGE_VERSION: '15.2.0' };
