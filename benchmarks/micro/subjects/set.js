'use strict';

const { highestOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');

function setUnlabelled({ Gauge }) {
  const gauge = new Gauge({ name: 'depth', help: 'Depth' });
  let value = 0;
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) gauge.set(++value);
  };
  return { run, recorded: () => highestOf(gauge) };
}

function setLabelled({ Gauge }) {
  const gauge = new Gauge({ name: 'depth', help: 'Depth', labelNames: LABEL_NAMES });
  const { walk } = reusedStrings(2000);
  let value = 0;
  const run = () => walk(labels => gauge.set(labels, ++value));
  return { run, recorded: () => highestOf(gauge) };
}

module.exports = {
  title: 'Gauge, `set`',
  cases: [
    recordingCase('unlabelled', '`set(value)`', setUnlabelled),
    recordingCase('reused-2k', '`set(labels, value)`, 2,000 label sets, reused strings', setLabelled),
  ],
};
