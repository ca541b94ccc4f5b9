'use strict';

module.exports = require('../../lib/http/fastify-plugin');
