'use strict';

const { observationsOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { reusedStrings, freshStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');
const { observedValues } = require('../observed-values.js');

const OPTIONS = { name: 'duration_seconds', help: 'Duration' };

function observeUnlabelled({ Histogram }) {
  const histogram = new Histogram(OPTIONS);
  const values = observedValues();
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) histogram.observe(values[operation]);
  };
  return { run, recorded: () => observationsOf(histogram) };
}

function observing(labelStrings, size) {
  return ({ Histogram }) => {
    const histogram = new Histogram({ ...OPTIONS, labelNames: LABEL_NAMES });
    const { sets, walk } = labelStrings(size);
    for (const labels of sets) histogram.observe(labels, 1);
    const values = observedValues();
    const run = () => {
      let operation = 0;
      walk(labels => histogram.observe(labels, values[operation++]));
    };
    return { run, recorded: () => observationsOf(histogram) };
  };
}

module.exports = {
  title: 'Histogram, `observe`',
  note: 'Default buckets, values in all of them; four labels, label sets at random.',
  cases: [
    recordingCase('unlabelled', '`observe(value)`', observeUnlabelled),
    recordingCase('reused-8', '8 label sets, reused strings', observing(reusedStrings, 8)),
    recordingCase('reused-2k', '2,000 label sets, reused strings', observing(reusedStrings, 2000)),
    recordingCase('fresh-2k', '2,000 label sets, fresh strings', observing(freshStrings, 2000)),
  ],
};
