'use strict';

module.exports = require('../..');
