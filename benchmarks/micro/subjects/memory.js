'use strict';

const { memoryOf } = require('../memory.js');
const { LABEL_NAMES, labelSet } = require('../../shared/label-sets.js');

const COUNTER_SERIES = 50_000;
const HISTOGRAM_LABEL_SETS = 10_000;
const UNLABELLED = 1000;
const WARM_UP_ROUNDS = 10;
const ROUNDS = 20;
const TYPES = ['Counter', 'Gauge', 'Histogram', 'Summary'];

async function ofCounterSeries({ library }) {
  const bytes = await memoryOf(async () => {
    const options = { name: 'requests_total', help: 'Requests', labelNames: LABEL_NAMES };
    const counter = new library.Counter(options);
    for (let number = 0; number < COUNTER_SERIES; number++) counter.inc(labelSet(number));
    await library.register.metrics();
  });
  return { bytes: bytes / COUNTER_SERIES };
}

async function ofHistogramLabelSets({ library }) {
  const bytes = await memoryOf(async () => {
    const options = { name: 'duration_seconds', help: 'Duration', labelNames: LABEL_NAMES };
    const histogram = new library.Histogram(options);
    for (let number = 0; number < HISTOGRAM_LABEL_SETS; number++) {
      histogram.observe(labelSet(number), (number % 100) / 10);
    }
    await library.register.metrics();
  });
  return { bytes: bytes / HISTOGRAM_LABEL_SETS };
}

async function ofUnlabelledMetrics({ library }) {
  // In the first rounds code is compiled and dropped, which takes as much memory as the metrics.
  const registries = [];
  const growths = [];
  for (let round = 0; round < ROUNDS; round++) {
    const registry = new library.Registry();
    registries.push(registry);
    growths.push(await memoryOf(() => addUnlabelledMetrics(library, registry, UNLABELLED)));
  }
  for (const registry of registries) {
    const registered = registry.getMetricsAsArray().length;
    if (registered !== UNLABELLED)
      throw new Error(`${UNLABELLED} metrics were made, the registry has ${registered}`);
  }
  // The lower quartile: code is compiled in later rounds as well, and takes as much as hundreds of metrics.
  const sorted = growths.slice(WARM_UP_ROUNDS).sort((a, b) => a - b);
  return { bytes: sorted[Math.floor(sorted.length / 4)] / UNLABELLED };
}

async function addUnlabelledMetrics(library, registry, count) {
  for (let number = 0; number < count; number++) {
    const type = TYPES[number % TYPES.length];
    const metric = new library[type]({ name: `metric_${number}`, help: 'A metric', registers: [registry] });
    if (type === 'Counter' || type === 'Gauge') metric.inc();
    else metric.observe(number / 100);
  }
  await registry.metrics();
}

const figures = { bytes: 'bytes' };

module.exports = {
  title: 'Memory',
  note: 'Growth of heap and array buffers, after one `metrics()` whose text is dropped and after garbage collection. Only the library refers to the strings of label values.',
  cases: [
    {
      key: 'counter-series',
      title: `a counter series, of ${COUNTER_SERIES.toLocaleString('en')} with four labels`,
      figures,
      measure: ofCounterSeries,
    },
    {
      key: 'histogram-label-set',
      title: `a label set of a histogram, of ${HISTOGRAM_LABEL_SETS.toLocaleString('en')} with four labels, default buckets`,
      figures,
      measure: ofHistogramLabelSets,
    },
    {
      key: 'unlabelled',
      title: `a metric without labels, of ${UNLABELLED.toLocaleString('en')} of all four types`,
      figures,
      measure: ofUnlabelledMetrics,
    },
  ],
};
