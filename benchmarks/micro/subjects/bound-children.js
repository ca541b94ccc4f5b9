'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { sumOf, observationsOf, highestOf } = require('../recorded.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');
const { observedValues } = require('../observed-values.js');

const MANY = 2000;
/** As many label sets as most metrics have, at most. */
const FEW = 100;

function metricOf(library, type) {
  return new library[type]({ name: 'bound', help: 'Bound', labelNames: LABEL_NAMES });
}

async function incOne({ library, seconds }) {
  const counter = metricOf(library, 'Counter');
  const [labels] = reusedStrings(1).sets;
  const child = counter.labels(labels);
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) child.inc();
  };
  return timed({ run, recorded: () => sumOf(counter) }, seconds);
}

async function incMany({ library, seconds }) {
  const counter = metricOf(library, 'Counter');
  const children = reusedStrings(MANY).sets.map(labels => counter.labels(labels));
  let next = 0;
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) {
      children[next].inc();
      next = next + 1 < MANY ? next + 1 : 0;
    }
  };
  return timed({ run, recorded: () => sumOf(counter) }, seconds);
}

async function setOne({ library, seconds }) {
  const gauge = metricOf(library, 'Gauge');
  const [labels] = reusedStrings(1).sets;
  const child = gauge.labels(labels);
  let value = 0;
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) child.set(++value);
  };
  return timed({ run, recorded: () => highestOf(gauge) }, seconds);
}

async function observeOne({ library, seconds }) {
  const histogram = metricOf(library, 'Histogram');
  const [labels] = reusedStrings(1).sets;
  const child = histogram.labels(labels);
  const values = observedValues();
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) child.observe(values[operation]);
  };
  return timed({ run, recorded: () => observationsOf(histogram) }, seconds);
}

/** `labels(...)` written inline: each call creates a child, uses it once and drops it. */
function inline(type, record, size = MANY) {
  return async ({ library, seconds }) => {
    const metric = metricOf(library, type);
    const { operations, walk } = reusedStrings(size);
    const run = () => walk(labels => record(metric, labels));
    const recorded = () => (type === 'Histogram' ? observationsOf(metric) : sumOf(metric));
    return timed({ operations, run, recorded }, seconds);
  };
}

const byPosition = {
  Counter: (counter, { method, route, status, zone }) => counter.labels(method, route, status, zone).inc(),
  Gauge: (gauge, { method, route, status, zone }) => gauge.labels(method, route, status, zone).inc(),
  Histogram: (histogram, { method, route, status, zone }) =>
    histogram.labels(method, route, status, zone).observe(0.2),
};
const byObject = {
  Counter: (counter, labels) => counter.labels(labels).inc(),
  Gauge: (gauge, labels) => gauge.labels(labels).inc(),
  Histogram: (histogram, labels) => histogram.labels(labels).observe(0.2),
};

async function timed(recording, seconds) {
  return { time: await nanosecondsPerOperation({ operations: OPERATIONS, ...recording }, seconds) };
}

const figures = { time: 'ns' };

module.exports = {
  title: 'Bound children, `labels(…)`',
  note: 'Four labels, passed once; in the rows "inline", passed with each call, for label sets at random: 2,000, or 100 where it says so.',
  cases: [
    { key: 'inc', title: '`inc()`', figures, measure: incOne },
    { key: 'inc-2k', title: '`inc()` of 2,000 children in turn', figures, measure: incMany },
    { key: 'set', title: '`set(value)`', figures, measure: setOne },
    { key: 'observe', title: '`observe(value)` of a histogram', figures, measure: observeOne },
    {
      key: 'inline',
      title: '`labels(a, b, c, d).inc()` inline',
      figures,
      measure: inline('Counter', byPosition.Counter),
    },
    {
      key: 'inline-100',
      title: '`labels(a, b, c, d).inc()` inline, 100 label sets',
      figures,
      measure: inline('Counter', byPosition.Counter, FEW),
    },
    {
      key: 'inline-object',
      title: '`labels({…}).inc()` inline',
      figures,
      measure: inline('Counter', byObject.Counter),
    },
    {
      key: 'inline-object-100',
      title: '`labels({…}).inc()` inline, 100 label sets',
      figures,
      measure: inline('Counter', byObject.Counter, FEW),
    },
    {
      key: 'inline-gauge',
      title: '`labels(a, b, c, d).inc()` of a gauge, inline',
      figures,
      measure: inline('Gauge', byPosition.Gauge),
    },
    {
      key: 'inline-gauge-100',
      title: '`labels(a, b, c, d).inc()` of a gauge, inline, 100 label sets',
      figures,
      measure: inline('Gauge', byPosition.Gauge, FEW),
    },
    {
      key: 'inline-gauge-object',
      title: '`labels({…}).inc()` of a gauge, inline',
      figures,
      measure: inline('Gauge', byObject.Gauge),
    },
    {
      key: 'inline-observe',
      title: '`labels(a, b, c, d).observe(value)` inline',
      figures,
      measure: inline('Histogram', byPosition.Histogram),
    },
    {
      key: 'inline-observe-100',
      title: '`labels(a, b, c, d).observe(value)` inline, 100 label sets',
      figures,
      measure: inline('Histogram', byPosition.Histogram, FEW),
    },
    {
      key: 'inline-observe-object',
      title: '`labels({…}).observe(value)` inline',
      figures,
      measure: inline('Histogram', byObject.Histogram),
    },
  ],
};
