'use strict';

const { expositionCases } = require('../exposition-cases.js');

module.exports = {
  title: 'Exposition, `metrics()`',
  note: 'A registry of histograms (60 % of the samples), counters (30 %) and gauges with four labels; a tenth of the series changes before each call. The gap is the longest time between two turns of the event loop during the call.',
  cases: expositionCases(async registry => {
    const text = await registry.metrics();
    return text.length > 0;
  }),
};
