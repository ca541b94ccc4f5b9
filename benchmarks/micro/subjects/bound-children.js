'use strict';

const { sumOf, observationsOf, highestOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');
const { observedValues } = require('../observed-values.js');

const MANY = 2000;
/** As many label sets as most metrics have, at most. */
const FEW = 100;

function metricOf(library, type) {
  return new library[type]({ name: 'bound', help: 'Bound', labelNames: LABEL_NAMES });
}

function incOne(library) {
  const counter = metricOf(library, 'Counter');
  const [labels] = reusedStrings(1).sets;
  const child = counter.labels(labels);
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) child.inc();
  };
  return { run, recorded: () => sumOf(counter) };
}

function incMany(library) {
  const counter = metricOf(library, 'Counter');
  const children = reusedStrings(MANY).sets.map(labels => counter.labels(labels));
  let next = 0;
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) {
      children[next].inc();
      next = next + 1 < MANY ? next + 1 : 0;
    }
  };
  return { run, recorded: () => sumOf(counter) };
}

function setOne(library) {
  const gauge = metricOf(library, 'Gauge');
  const [labels] = reusedStrings(1).sets;
  const child = gauge.labels(labels);
  let value = 0;
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) child.set(++value);
  };
  return { run, recorded: () => highestOf(gauge) };
}

function observeOne(library) {
  const histogram = metricOf(library, 'Histogram');
  const [labels] = reusedStrings(1).sets;
  const child = histogram.labels(labels);
  const values = observedValues();
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) child.observe(values[operation]);
  };
  return { run, recorded: () => observationsOf(histogram) };
}

/** `labels(...)` written inline: each call creates a child, uses it once and drops it. */
function inline(type, record, size = MANY) {
  return library => {
    const metric = metricOf(library, type);
    const { walk } = reusedStrings(size);
    const run = () => walk(labels => record(metric, labels));
    const recorded = () => (type === 'Histogram' ? observationsOf(metric) : sumOf(metric));
    return { run, recorded };
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

/** One label with each call, after `curry()` where a client has it; otherwise all four. */
function statusOnly(isCurried) {
  return library => {
    const counter = metricOf(library, 'Counter');
    const { sets } = reusedStrings(MANY);
    const [{ method, zone }] = sets;
    const calls = sets.slice(0, OPERATIONS).map(({ route, status }) => ({ route, status }));
    const all = () => {
      for (const { route, status } of calls) counter.inc({ method, route, status, zone });
    };
    const recorded = () => sumOf(counter);
    if (!isCurried || counter.curry === undefined) return { run: all, recorded };
    const byRoute = new Map(calls.map(({ route }) => [route, counter.curry({ method, route, zone })]));
    const curried = calls.map(({ route }) => byRoute.get(route));
    const run = () => {
      for (let i = 0; i < OPERATIONS; i++) curried[i].inc({ status: calls[i].status });
    };
    return { run, recorded };
  };
}

module.exports = {
  title: 'Bound children, `labels(…)`',
  note: 'Four labels, passed once; in the rows "inline", passed with each call, for label sets at random: 2,000, or 100 where it says so.',
  cases: [
    recordingCase('inc', '`inc()`', incOne),
    recordingCase('inc-2k', '`inc()` of 2,000 children in turn', incMany),
    recordingCase('set', '`set(value)`', setOne),
    recordingCase('observe', '`observe(value)` of a histogram', observeOne),
    recordingCase('curry', '`inc({ status })` after `curry({ method, route, zone })`', statusOnly(true)),
    recordingCase('uncurried', 'the same, `inc({ method, route, status, zone })`', statusOnly(false)),
    recordingCase('inline', '`labels(a, b, c, d).inc()` inline', inline('Counter', byPosition.Counter)),
    recordingCase(
      'inline-100',
      '`labels(a, b, c, d).inc()` inline, 100 label sets',
      inline('Counter', byPosition.Counter, FEW),
    ),
    recordingCase('inline-object', '`labels({…}).inc()` inline', inline('Counter', byObject.Counter)),
    recordingCase(
      'inline-object-100',
      '`labels({…}).inc()` inline, 100 label sets',
      inline('Counter', byObject.Counter, FEW),
    ),
    recordingCase(
      'inline-gauge',
      '`labels(a, b, c, d).inc()` of a gauge, inline',
      inline('Gauge', byPosition.Gauge),
    ),
    recordingCase(
      'inline-gauge-100',
      '`labels(a, b, c, d).inc()` of a gauge, inline, 100 label sets',
      inline('Gauge', byPosition.Gauge, FEW),
    ),
    recordingCase(
      'inline-gauge-object',
      '`labels({…}).inc()` of a gauge, inline',
      inline('Gauge', byObject.Gauge),
    ),
    recordingCase(
      'inline-observe',
      '`labels(a, b, c, d).observe(value)` inline',
      inline('Histogram', byPosition.Histogram),
    ),
    recordingCase(
      'inline-observe-100',
      '`labels(a, b, c, d).observe(value)` inline, 100 label sets',
      inline('Histogram', byPosition.Histogram, FEW),
    ),
    recordingCase(
      'inline-observe-object',
      '`labels({…}).observe(value)` inline',
      inline('Histogram', byObject.Histogram),
    ),
  ],
};
