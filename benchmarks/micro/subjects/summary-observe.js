'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { observationsOf } = require('../recorded.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');
const { observedValues } = require('../observed-values.js');

function observingUnlabelled(options) {
  return async ({ library, seconds }) => {
    const summary = new library.Summary({ name: 'duration_seconds', help: 'Duration', ...options });
    const values = observedValues();
    const run = () => {
      for (let operation = 0; operation < OPERATIONS; operation++) summary.observe(values[operation]);
    };
    const recording = { operations: OPERATIONS, run, recorded: () => observationsOf(summary) };
    return { time: await nanosecondsPerOperation(recording, seconds) };
  };
}

async function observeLabelled({ library, seconds }) {
  const summary = new library.Summary({
    name: 'duration_seconds',
    help: 'Duration',
    labelNames: LABEL_NAMES,
  });
  const { operations, walk } = reusedStrings(200);
  const values = observedValues();
  const run = () => {
    let operation = 0;
    walk(labels => summary.observe(labels, values[operation++]));
  };
  const recording = { operations, run, recorded: () => observationsOf(summary) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

const figures = { time: 'ns' };
const WINDOW = { maxAgeSeconds: 600, ageBuckets: 5 };

module.exports = {
  title: 'Summary, `observe`',
  note: 'Default percentiles.',
  cases: [
    { key: 'unlabelled', title: '`observe(value)`', figures, measure: observingUnlabelled({}) },
    {
      key: 'window',
      title: '`observe(value)`, sliding window of 5 buckets',
      figures,
      measure: observingUnlabelled(WINDOW),
    },
    {
      key: 'reused-200',
      title: '`observe(labels, value)`, 200 label sets, reused strings',
      figures,
      measure: observeLabelled,
    },
  ],
};
