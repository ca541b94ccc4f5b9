'use strict';
module.exports = { documentOf: () => '' };
