'use strict';

// A thread that records with one metric, with the option maxIdleSeconds or without, whenever it is told to. A
// thread of its own, because V8 compiles code that meets both kinds of metrics in another way.

const { parentPort, workerData } = require('node:worker_threads');
const { OURS, loadLibrary } = require('../shared/clients.js');
const { LABEL_NAMES } = require('../shared/label-sets.js');
const { observedValues } = require('./observed-values.js');
const { OPERATIONS, reusedStrings } = require('./label-strings.js');
const { sumOf, observationsOf } = require('./recorded.js');
const { nanosecondsPerOperation } = require('./timing.js');

const SERIES = 2000;

/**
 * @type {Record<string, (library: any, options: object) => Omit<import('./timing.js').Recording,
 * 'operations'>>}
 */
const KINDS = {
  inc({ Counter }, options) {
    const counter = new Counter(options);
    const { sets, walk } = reusedStrings(SERIES);
    for (const labels of sets) counter.inc(labels);
    return { run: () => walk(labels => counter.inc(labels)), recorded: () => sumOf(counter) };
  },
  child({ Counter }, options) {
    const counter = new Counter(options);
    const child = counter.labels(reusedStrings(1).sets[0]);
    const run = () => {
      for (let operation = 0; operation < OPERATIONS; operation++) child.inc();
    };
    return { run, recorded: () => sumOf(counter) };
  },
  observe({ Histogram }, options) {
    const histogram = new Histogram(options);
    const { sets, walk } = reusedStrings(SERIES);
    for (const labels of sets) histogram.observe(labels, 1);
    const values = observedValues();
    let next = 0;
    const run = () => {
      next = 0;
      walk(labels => histogram.observe(labels, values[next++]));
    };
    return { run, recorded: () => observationsOf(histogram) };
  },
};

const { kind, maxIdleSeconds } = workerData;
const options = { name: 'm', help: 'M', labelNames: LABEL_NAMES, maxIdleSeconds };
const { run, recorded } = KINDS[kind](loadLibrary(OURS), options);

parentPort.on('message', async seconds => {
  parentPort.postMessage(await nanosecondsPerOperation({ operations: OPERATIONS, run, recorded }, seconds));
});
