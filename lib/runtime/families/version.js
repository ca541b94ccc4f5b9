'use strict';

const { defineFamily } = require('../sampling/metric-group');

const VERSION = 'nodejs_version_info';

/** The version of Node.js, in the labels of a gauge with the value 1. */
const version = defineFamily(group => {
  const [major, minor, patch] = process.versions.node.split('.').map(part => Number.parseInt(part, 10));
  const gauge = group.gauge({
    name: VERSION,
    help: 'Node.js version info.',
    labelNames: ['version', 'major', 'minor', 'patch'],
    aggregator: 'first',
  });
  const labels = { version: process.version, major, minor, patch, ...group.labels };
  group.collectTogether([gauge], () => gauge.set(labels, 1));
});

module.exports = version;
module.exports.metricNames = [VERSION];
