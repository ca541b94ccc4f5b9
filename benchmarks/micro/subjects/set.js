'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { highestOf } = require('../recorded.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');

async function setUnlabelled({ library, seconds }) {
  const gauge = new library.Gauge({ name: 'depth', help: 'Depth' });
  let value = 0;
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) gauge.set(++value);
  };
  const recording = { operations: OPERATIONS, run, recorded: () => highestOf(gauge) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

async function setLabelled({ library, seconds }) {
  const gauge = new library.Gauge({ name: 'depth', help: 'Depth', labelNames: LABEL_NAMES });
  const { operations, walk } = reusedStrings(2000);
  let value = 0;
  const run = () => walk(labels => gauge.set(labels, ++value));
  const recording = { operations, run, recorded: () => highestOf(gauge) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

module.exports = {
  title: 'Gauge, `set`',
  cases: [
    { key: 'unlabelled', title: '`set(value)`', figures: { time: 'ns' }, measure: setUnlabelled },
    {
      key: 'reused-2k',
      title: '`set(labels, value)`, 2,000 label sets, reused strings',
      figures: { time: 'ns' },
      measure: setLabelled,
    },
  ],
};
