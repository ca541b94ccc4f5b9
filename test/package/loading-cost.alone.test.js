'use strict';

// The cost of loading the library, compared with prom-client. Memory is asserted; time is only reported,
// because it depends on the load of the machine.

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { it } = require('node:test');

const ROUNDS = 7;
const MEASURE = path.join(__dirname, 'fixtures/loading-cost.js');
const LIBRARIES = { ours: path.join(__dirname, '../..'), 'prom-client': require.resolve('prom-client') };

function costOf(library) {
  const output = execFileSync(process.execPath, ['--expose-gc', MEASURE, LIBRARIES[library]], {
    encoding: 'utf8',
  });
  return JSON.parse(output);
}

function median(numbers) {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1];
}

it('the library takes no more memory to load than prom-client', t => {
  const costs = { ours: [], 'prom-client': [] };
  for (let i = 0; i < ROUNDS; i++) {
    for (const library of Object.keys(costs)) costs[library].push(costOf(library));
  }
  const memory = {};
  for (const [library, measured] of Object.entries(costs)) {
    memory[library] = median(measured.map(({ bytes }) => bytes));
    const milliseconds = median(measured.map(cost => cost.milliseconds)).toFixed(1);
    t.diagnostic(
      `${library}: ${milliseconds} ms, ${(memory[library] / 1024).toFixed()} KB, ${measured[0].files} files`,
    );
  }
  assert.ok(memory.ours <= memory['prom-client']);
});
