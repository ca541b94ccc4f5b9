'use strict';

const { defineFamily } = require('../sampling/metric-group');

const VERSION = 'nodejs_version_info';

/** The version of Node.js, in the labels of a gauge with the value 1. */
module.exports = defineFamily({ [VERSION]: 'Node.js version info.' }, group => {
  const [major, minor, patch] = process.versions.node.split('.').map(part => Number.parseInt(part, 10));
  const labelNames = ['version', 'major', 'minor', 'patch'];
  const gauge = group.gauge(VERSION, { labelNames, aggregator: 'first' });
  const labels = { version: process.version, major, minor, patch, ...group.labels };
  group.collectTogether([gauge], () => gauge.set(labels, 1));
});
module.exports.metricNames = [VERSION];
