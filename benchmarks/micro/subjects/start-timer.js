'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { observationsOf } = require('../recorded.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');

async function timeUnlabelled({ library, seconds }) {
  const histogram = new library.Histogram({ name: 'duration_seconds', help: 'Duration' });
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) histogram.startTimer()();
  };
  const recording = { operations: OPERATIONS, run, recorded: () => observationsOf(histogram) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

async function timeLabelled({ library, seconds }) {
  const histogram = new library.Histogram({
    name: 'duration_seconds',
    help: 'Duration',
    labelNames: LABEL_NAMES,
  });
  const { operations, walk } = reusedStrings(2000);
  // As in a request handler: some labels are known at the start, the status at the end.
  const run = () =>
    walk(({ method, route, status, zone }) => histogram.startTimer({ method, route, zone })({ status }));
  const recording = { operations, run, recorded: () => observationsOf(histogram) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

module.exports = {
  title: 'Histogram, `startTimer`',
  note: 'Start and end together.',
  cases: [
    { key: 'unlabelled', title: '`startTimer()()`', figures: { time: 'ns' }, measure: timeUnlabelled },
    {
      key: 'reused-2k',
      title: '`startTimer(three labels)(one label)`, 2,000 label sets, reused strings',
      figures: { time: 'ns' },
      measure: timeLabelled,
    },
  ],
};
