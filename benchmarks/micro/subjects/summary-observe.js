'use strict';

const { observationsOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { reusedStrings, OPERATIONS } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');
const { observedValues } = require('../observed-values.js');

const OPTIONS = { name: 'duration_seconds', help: 'Duration' };
const WINDOW = { maxAgeSeconds: 600, ageBuckets: 5 };

function observingUnlabelled(options) {
  return ({ Summary }) => {
    const summary = new Summary({ ...OPTIONS, ...options });
    const values = observedValues();
    const run = () => {
      for (let operation = 0; operation < OPERATIONS; operation++) summary.observe(values[operation]);
    };
    return { run, recorded: () => observationsOf(summary) };
  };
}

function observeLabelled({ Summary }) {
  const summary = new Summary({ ...OPTIONS, labelNames: LABEL_NAMES });
  const { walk } = reusedStrings(200);
  const values = observedValues();
  const run = () => {
    let operation = 0;
    walk(labels => summary.observe(labels, values[operation++]));
  };
  return { run, recorded: () => observationsOf(summary) };
}

module.exports = {
  title: 'Summary, `observe`',
  note: 'Default percentiles.',
  cases: [
    recordingCase('unlabelled', '`observe(value)`', observingUnlabelled({})),
    recordingCase('window', '`observe(value)`, sliding window of 5 buckets', observingUnlabelled(WINDOW)),
    recordingCase('reused-200', '`observe(labels, value)`, 200 label sets, reused strings', observeLabelled),
  ],
};
