'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { sumOf } = require('../recorded.js');
const { OPERATIONS } = require('../label-strings.js');

async function measure({ library, seconds }) {
  const counter = new library.Counter({ name: 'requests_total', help: 'Requests' });
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) counter.inc();
  };
  const recording = { operations: OPERATIONS, run, recorded: () => sumOf(counter) };
  return { time: await nanosecondsPerOperation(recording, seconds) };
}

module.exports = {
  title: 'Counter, `inc()`',
  cases: [{ key: 'unlabelled', title: 'no labels', figures: { time: 'ns' }, measure }],
};
