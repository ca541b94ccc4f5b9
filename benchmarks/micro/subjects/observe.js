'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { observationsOf } = require('../recorded.js');
const { reusedStrings, freshStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');
const { observedValues } = require('../observed-values.js');

async function observeUnlabelled({ library, seconds }) {
  const histogram = new library.Histogram({ name: 'duration_seconds', help: 'Duration' });
  const values = observedValues();
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) histogram.observe(values[operation]);
  };
  const recording = { operations: OPERATIONS, run, recorded: () => observationsOf(histogram) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

function observing(labelStrings, size) {
  return async ({ library, seconds }) => {
    const histogram = new library.Histogram({
      name: 'duration_seconds',
      help: 'Duration',
      labelNames: LABEL_NAMES,
    });
    const { sets, operations, walk } = labelStrings(size);
    for (const labels of sets) histogram.observe(labels, 1);
    const values = observedValues();
    const run = () => {
      let operation = 0;
      walk(labels => histogram.observe(labels, values[operation++]));
    };
    const recording = { operations, run, recorded: () => observationsOf(histogram) };
    return { time: await nanosecondsPerOperation(recording, seconds) };
  };
}

const figures = { time: 'ns' };

module.exports = {
  title: 'Histogram, `observe`',
  note: 'Default buckets, values in all of them; four labels, label sets at random.',
  cases: [
    { key: 'unlabelled', title: '`observe(value)`', figures, measure: observeUnlabelled },
    { key: 'reused-8', title: '8 label sets, reused strings', figures, measure: observing(reusedStrings, 8) },
    {
      key: 'reused-2k',
      title: '2,000 label sets, reused strings',
      figures,
      measure: observing(reusedStrings, 2000),
    },
    {
      key: 'fresh-2k',
      title: '2,000 label sets, fresh strings',
      figures,
      measure: observing(freshStrings, 2000),
    },
  ],
};
