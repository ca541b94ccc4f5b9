'use strict';

const { sumOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { OPERATIONS } = require('../label-strings.js');

function incrementing({ Counter }) {
  const counter = new Counter({ name: 'requests_total', help: 'Requests' });
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) counter.inc();
  };
  return { run, recorded: () => sumOf(counter) };
}

module.exports = {
  title: 'Counter, `inc()`',
  cases: [recordingCase('unlabelled', 'no labels', incrementing)],
};
