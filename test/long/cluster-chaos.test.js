'use strict';

// Chaos for several minutes. The short form is in test/faults/chaos.test.js.

const { randomInt } = require('node:crypto');
const { describe, it } = require('node:test');

const { runChaos } = require('../fixtures/cluster-chaos.js');

describe('a cluster of which 120 workers are killed at random', () => {
  const ways = {
    'with a thread': {},
    'in place': { inPlace: true },
    'with checkpoints': { checkpointInterval: 100 },
  };
  for (const [way, options] of Object.entries(ways)) {
    it(`a cluster of which 120 workers are killed at random answers every scrape, and lets no series fall, ${way}`, async t => {
      await runChaos(t, { kills: 120, options });
    });
  }
});

describe('a cluster with faults of all kinds', () => {
  for (const [way, options] of Object.entries({
    'with a thread': {},
    'with checkpoints': { checkpointInterval: 100 },
  })) {
    it(`a cluster with faults of all kinds in random order answers every scrape, and lets no series fall, ${way}`, async t => {
      const otherFaults = Number(process.env.CHAOS_SEED ?? randomInt(2 ** 31));
      t.diagnostic(`CHAOS_SEED=${otherFaults}`);
      await runChaos(t, { kills: Number(process.env.CHAOS_KILLS ?? 30), options, otherFaults });
    });
  }
});
