'use strict';

// Registries that earlier test files of a test runner have left behind in the process, as under Jest.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { describe, it } = require('node:test');
const { promisify } = require('node:util');

const PROGRAM = path.join(__dirname, 'fixtures/leaked-registries.js');

/** @param {string} scenario */
async function resultOf(scenario) {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, scenario]);
  return JSON.parse(stdout);
}

describe('registries that earlier test files have left behind', () => {
  it('do nothing when a thread joins', async () => {
    // The thread, and the aggregator of the last test file.
    const started = 2;
    assert.deepEqual(await resultOf('threads'), { counted: 5, started, requiredLate: [], warnings: [] });
  });

  it('do nothing when a worker starts', async () => {
    assert.deepEqual(await resultOf('workers'), { counted: 5, requiredLate: [], warnings: [] });
  });
});
