'use strict';

const { sumOf } = require('../recorded.js');
const { recordingCase } = require('../recording-case.js');
const { reusedStrings, freshStrings } = require('../label-strings.js');
const { LABEL_NAMES } = require('../../shared/label-sets.js');

const SIZES = { 8: '8', '2k': '2,000', '100k': '100,000' };

function incrementing(labelStrings, size) {
  return ({ Counter }) => {
    const counter = new Counter({ name: 'requests_total', help: 'Requests', labelNames: LABEL_NAMES });
    const { sets, walk } = labelStrings(size);
    for (const labels of sets) counter.inc(labels);
    return { run: () => walk(labels => counter.inc(labels)), recorded: () => sumOf(counter) };
  };
}

function casesOf(kind, title, labelStrings) {
  return Object.entries(SIZES).map(([size, text]) =>
    recordingCase(
      `${kind}-${size}`,
      `${text} label sets, ${title}`,
      incrementing(labelStrings, Number(text.replace(',', ''))),
    ),
  );
}

module.exports = {
  title: 'Counter, `inc(labels)`',
  note: 'Four labels, label sets at random. Reused strings are the same objects each time; fresh ones are cut out of other strings for each call, which is part of the time.',
  cases: [
    ...casesOf('reused', 'reused strings', reusedStrings),
    ...casesOf('fresh', 'fresh strings', freshStrings),
  ],
};
