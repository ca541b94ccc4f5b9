'use strict';

// The histograms of the micro benchmarks of native histograms.

const { OURS } = require('../shared/clients.js');
const { LABEL_NAMES, labelSet } = require('../shared/label-sets.js');
const { randomFrom } = require('../shared/random.js');

const FACTOR = 1.1;

/** A native histogram, with classic buckets too or without; of the other clients, what they have. */
function histogramOf({ client, library }, { isBoth = false, labelNames = LABEL_NAMES } = {}) {
  const options = { name: 'duration_seconds', help: 'Duration', labelNames };
  const native = { nativeHistogramBucketFactor: FACTOR, ...(isBoth ? {} : { buckets: [] }) };
  return new library.Histogram({ ...options, ...(client === OURS ? native : {}) });
}

/** A log-normal distribution of durations around 30 ms for each series. */
function fillHistogram(histogram, { series, observations }) {
  const random = randomFrom(1);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  for (let number = 0; number < series; number++) {
    const labels = labelSet(number);
    for (let i = 0; i < observations; i++) histogram.observe(labels, 0.03 * Math.exp(normal()));
  }
}

module.exports = { FACTOR, fillHistogram, histogramOf };
