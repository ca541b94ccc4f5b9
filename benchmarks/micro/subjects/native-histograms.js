'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const zlib = require('node:zlib');
const { fileExchange } = require('../file-exchange.js');
const { memoryOf } = require('../memory.js');
const { scrapingCluster } = require('../native-cluster.js');
const { FACTOR, fillHistogram, histogramOf } = require('../native-workload.js');
const { observationsOf } = require('../recorded.js');
const { OPERATIONS, reusedStrings } = require('../label-strings.js');
const { observedValues } = require('../observed-values.js');
const { millisecondsPerCall, nanosecondsPerOperation } = require('../timing.js');
const { OURS, REFERENCE } = require('../../shared/clients.js');
const { LABEL_NAMES, labelSet } = require('../../shared/label-sets.js');
const { median } = require('../../shared/statistics.js');

const BUCKETS = 64;
const MEMORY_SERIES = 10_000;
const PAGE = { series: 10_000, observations: 20 };
const SMALL_PAGE = { series: 500, observations: 1000 };

function observing(options) {
  return async ({ seconds, ...given }) => {
    const histogram = histogramOf(given, options);
    const child = histogram.labels(reusedStrings(1).sets[0]);
    const values = observedValues();
    const run = () => {
      for (let operation = 0; operation < OPERATIONS; operation++) child.observe(values[operation]);
    };
    const recorded = () => observationsOf(histogram);
    return { time: await nanosecondsPerOperation({ operations: OPERATIONS, run, recorded }, seconds) };
  };
}

/** After its first observation in each of so many neighbouring buckets. */
async function memoryOfSeries(given) {
  const bytes = await memoryOf(async () => {
    const histogram = histogramOf(given);
    for (let number = 0; number < MEMORY_SERIES; number++) {
      const labels = labelSet(number);
      for (let bucket = 0; bucket < BUCKETS; bucket++) histogram.observe(labels, 0.001 * 2 ** (bucket / 8));
    }
    await given.library.register.metrics();
  });
  return { bytes: bytes / MEMORY_SERIES };
}

/** A worker's captures of a native and of a classic histogram, in turn; a tenth of the rows has changed. */
async function comparedSections({ library, seconds }) {
  const { Histogram, Registry } = library;
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-native-'));
  const kinds = [{ nativeHistogramBucketFactor: FACTOR, buckets: [] }, {}].map((options, kind) => {
    const registers = [new Registry()];
    const histogram = new Histogram({
      name: 'seconds',
      help: 'h',
      labelNames: LABEL_NAMES,
      registers,
      ...options,
    });
    fillHistogram(histogram, PAGE);
    const place = path.join(directory, String(kind));
    fs.mkdirSync(place);
    return { histogram, exchange: fileExchange(registers[0], place), sections: [] };
  });
  try {
    let round = 0;
    const call = async () => {
      for (const { exchange, sections } of kinds) {
        await exchange.write();
        sections.push(exchange.section);
        exchange.read();
      }
    };
    const before = () => {
      round++;
      for (const { histogram } of kinds)
        for (let number = round % 10; number < PAGE.series; number += 10)
          histogram.observe(labelSet(number), 0.1);
    };
    await millisecondsPerCall(call, { seconds, before });
    const [native, classic] = kinds.map(({ sections }) => median(sections));
    return { native, classic, share: native / classic };
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

/** The page that a Prometheus of today gets: of this library protobuf, of the others text. */
function page(size) {
  return async ({ seconds, ...given }) => {
    const { client, library } = given;
    const histogram = histogramOf(given);
    fillHistogram(histogram, size);
    let round = 0;
    const before = () => {
      for (let number = round++ % 10; number < size.series; number += 10)
        histogram.observe(labelSet(number), 0.1);
    };
    const { register, Registry } = library;
    if (client === OURS) register.setContentType(Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE);
    const read = () => (client === OURS ? register.metricsBytes() : register.metrics());
    const { wall, gap } = await millisecondsPerCall(read, { seconds, before });
    const body = Buffer.from(await read());
    return { wall, gap, bytes: body.length, gzip: zlib.gzipSync(body).length };
  };
}

const OBSERVE = { figures: { time: 'ns' } };
const PAGE_FIGURES = { wall: 'ms', gap: 'ms', bytes: 'bytes', gzip: 'bytes' };
const labelled = ({ series, observations }) =>
  `${series.toLocaleString('en')} series of ${observations.toLocaleString('en')} observations`;

module.exports = {
  title: 'Native histograms',
  note: `Native with a factor of ${FACTOR}; of the other clients, which have none, a classic histogram with the default buckets, and a page of text.`,
  cases: [
    { key: 'observe', title: '`observe(value)` of a kept child', ...OBSERVE, measure: observing() },
    {
      key: 'observe-both',
      title: '`observe(value)` of a kept child, classic buckets too',
      ...OBSERVE,
      measure: observing({ isBoth: true }),
    },
    {
      key: 'series',
      title: `a series with ${BUCKETS} populated buckets`,
      figures: { bytes: 'bytes' },
      measure: memoryOfSeries,
    },
    {
      key: 'page',
      title: `page of ${labelled(PAGE)}`,
      figures: PAGE_FIGURES,
      clients: [REFERENCE, OURS],
      measure: page(PAGE),
    },
    {
      key: 'small-page',
      title: `page of ${labelled(SMALL_PAGE)}`,
      figures: PAGE_FIGURES,
      clients: [REFERENCE, OURS],
      measure: page(SMALL_PAGE),
    },
    {
      key: 'section',
      title: "longest section of a worker's capture, 10,000 series, beside those of a classic one",
      figures: { native: 'ms', classic: 'ms', share: 'x' },
      clients: [OURS],
      measure: comparedSections,
    },
    {
      key: 'cluster',
      title: 'scrape of four workers with 2,000 series each',
      figures: { wall: 'ms', gap: 'ms', bytes: 'bytes' },
      measure: scrapingCluster(2000),
    },
  ],
};
