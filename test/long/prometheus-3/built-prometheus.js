'use strict';

// The server that build.sh builds, for ../../fixtures/prometheus-server.js: to be loaded before that.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const [, version] = /^version=(\S+)/m.exec(fs.readFileSync(path.join(__dirname, 'build.sh'), 'utf8'));
const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');

process.env.PROMETHEUS = path.join(cache, `prom-client-cluster/prometheus-${version}/prometheus`);

/** Why tests cannot run; false if they can. */
const skip = !fs.existsSync(process.env.PROMETHEUS) && 'not built: run test/long/prometheus-3/build.sh';

module.exports = { PROMETHEUS: process.env.PROMETHEUS, skip };
