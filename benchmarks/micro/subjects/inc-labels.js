'use strict';

const { nanosecondsPerOperation } = require('../timing.js');
const { sumOf } = require('../recorded.js');
const { reusedStrings, freshStrings } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');

const SIZES = { 8: '8', '2k': '2,000', '100k': '100,000' };

function incrementing(labelStrings, size) {
  return async ({ library, seconds }) => {
    const counter = new library.Counter({
      name: 'requests_total',
      help: 'Requests',
      labelNames: LABEL_NAMES,
    });
    const { sets, operations, walk } = labelStrings(size);
    for (const labels of sets) counter.inc(labels);
    const run = () => walk(labels => counter.inc(labels));
    const recording = { operations, run, recorded: () => sumOf(counter) };
    return { time: await nanosecondsPerOperation(recording, seconds) };
  };
}

function casesOf(kind, title, labelStrings) {
  return Object.entries(SIZES).map(([size, text]) => ({
    key: `${kind}-${size}`,
    title: `${text} label sets, ${title}`,
    figures: { time: 'ns' },
    measure: incrementing(labelStrings, Number(text.replace(',', ''))),
  }));
}

module.exports = {
  title: 'Counter, `inc(labels)`',
  note: 'Four labels, label sets at random. Reused strings are the same objects each time; fresh ones are cut out of other strings for each call, which is part of the time.',
  cases: [
    ...casesOf('reused', 'reused strings', reusedStrings),
    ...casesOf('fresh', 'fresh strings', freshStrings),
  ],
};
