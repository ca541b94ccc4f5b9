'use strict';

// Registries of several sizes, with integers and with floats, for the subjects that read whole registries.

const { Workload } = require('../shared/workload.js');
const { millisecondsPerCall } = require('./timing.js');

const SIZES = { '1k': 1000, '10k': 10_000, '100k': 100_000 };
const KINDS = ['integers', 'floats'];

/**
 * @param {(registry: any) => Promise<boolean>} read resolves to false if there was no response
 * @returns {import('./plan.js').Case[]}
 */
function expositionCases(read) {
  return KINDS.flatMap(kind =>
    Object.entries(SIZES).map(([key, samples]) => ({
      key: `${kind}-${key}`,
      title: `${samples.toLocaleString('en')} samples, ${kind}`,
      figures: { wall: 'ms', gap: 'ms' },
      measure: ({ library, seconds }) => readAgain(library, { samples, kind, read, seconds }),
    })),
  );
}

async function readAgain(library, { samples, kind, read, seconds }) {
  const workload = new Workload(library, { samples, kind, seed: 1 });
  let round = 0;
  const call = async () => {
    if (!(await read(library.register))) throw new Error('nothing came');
  };
  return millisecondsPerCall(call, { seconds, before: () => workload.change(++round) });
}

module.exports = { expositionCases };
