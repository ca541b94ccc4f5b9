'use strict';

const { millisecondsPerCall } = require('../timing.js');
const { observedValues } = require('../observed-values.js');

const SUMMARIES = 1000;
const OBSERVED_AT_FIRST = 200;

async function measure({ library, seconds }) {
  const summaries = Array.from(
    { length: SUMMARIES },
    (_, number) => new library.Summary({ name: `summary_${number}`, help: 'A summary' }),
  );
  const values = observedValues();
  for (const summary of summaries) {
    for (let place = 0; place < OBSERVED_AT_FIRST; place++) summary.observe(values[place]);
  }
  let next = 0;
  const observeAll = () => {
    for (const summary of summaries) summary.observe(values[next++ % values.length]);
  };
  const call = async () => {
    const text = await library.register.metrics();
    if (text.length === 0) throw new Error('nothing came');
  };
  return millisecondsPerCall(call, { seconds, before: observeAll });
}

module.exports = {
  title: 'A thousand summaries',
  note: '`metrics()` of a thousand summaries with default percentiles; each observes one value before each call.',
  cases: [{ key: 'metrics', title: '`metrics()`', figures: { wall: 'ms', gap: 'ms' }, measure }],
};
