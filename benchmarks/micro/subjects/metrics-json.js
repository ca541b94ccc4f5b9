'use strict';

const { expositionCases } = require('../exposition-cases.js');

module.exports = {
  title: 'Exposition, `getMetricsAsJSON()`',
  note: 'The same registries.',
  cases: expositionCases(async registry => {
    const metrics = await registry.getMetricsAsJSON();
    return metrics.length > 0;
  }),
};
