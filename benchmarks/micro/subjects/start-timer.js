'use strict';

const { observationsOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');

const OPTIONS = { name: 'duration_seconds', help: 'Duration' };

function timeUnlabelled({ Histogram }) {
  const histogram = new Histogram(OPTIONS);
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) histogram.startTimer()();
  };
  return { run, recorded: () => observationsOf(histogram) };
}

function timeLabelled({ Histogram }) {
  const histogram = new Histogram({ ...OPTIONS, labelNames: LABEL_NAMES });
  const { walk } = reusedStrings(2000);
  // As in a request handler: some labels are known at the start, the status at the end.
  const run = () =>
    walk(({ method, route, status, zone }) => histogram.startTimer({ method, route, zone })({ status }));
  return { run, recorded: () => observationsOf(histogram) };
}

module.exports = {
  title: 'Histogram, `startTimer`',
  note: 'Start and end together.',
  cases: [
    recordingCase('unlabelled', '`startTimer()()`', timeUnlabelled),
    recordingCase(
      'reused-2k',
      '`startTimer(three labels)(one label)`, 2,000 label sets, reused strings',
      timeLabelled,
    ),
  ],
};
