'use strict';

const { millisecondsPerCall } = require('../timing.js');
const { LABEL_NAMES, labelSet } = require('../../shared/label-sets.js');

const SAMPLES = 100_000;
const BOUNDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10];
const LINES_OF_A_HISTOGRAM = BOUNDS.length + 3; // +Inf, sum, count
const ONE_IN = 10; // label sets that change between two calls

async function measure({ library, seconds }) {
  const registry = new library.Registry(library.Registry.OPENMETRICS_CONTENT_TYPE);
  const options = {
    help: 'Benchmark',
    labelNames: LABEL_NAMES,
    enableExemplars: true,
    registers: [registry],
  };
  const counter = new library.Counter({ name: 'requests_total', ...options });
  const histogram = new library.Histogram({ name: 'duration_seconds', buckets: BOUNDS, ...options });
  const counterSeries = SAMPLES / 2;
  const histogramSeries = Math.floor((SAMPLES - counterSeries) / LINES_OF_A_HISTOGRAM);
  let traces = 0;
  const nextTrace = () => ({ trace_id: (++traces).toString(16).padStart(32, '0') });
  const count = number => counter.inc({ labels: labelSet(number), value: 1, exemplarLabels: nextTrace() });
  const observe = (number, value) =>
    histogram.observe({ labels: labelSet(number), value, exemplarLabels: nextTrace() });

  for (let number = 0; number < counterSeries; number++) count(number);
  for (let number = 0; number < histogramSeries; number++) {
    for (const bound of [...BOUNDS, 100]) observe(number, bound);
  }
  let round = 0;
  const before = () => {
    round++;
    for (let number = round % ONE_IN; number < counterSeries; number += ONE_IN) count(number);
    for (let number = round % ONE_IN; number < histogramSeries; number += ONE_IN) observe(number, 1);
  };
  const call = async () => {
    const text = await registry.metrics();
    if (!text.includes(' # {trace_id=')) throw new Error('no exemplar came');
  };
  return millisecondsPerCall(call, { seconds, before });
}

module.exports = {
  title: 'Exemplars',
  note: '`metrics()` as OpenMetrics: 100,000 samples, half of them counters; each counter and each bucket has an exemplar.',
  cases: [
    {
      key: '100k',
      title: '`metrics()`, 100,000 samples',
      figures: { wall: 'ms', gap: 'ms' },
      seconds: 15,
      measure,
    },
  ],
};
