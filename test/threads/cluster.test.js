'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { it } = require('node:test');
const { promisify } = require('node:util');

/** @param {string} program */
async function outputOf(program) {
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(__dirname, 'fixtures', program)]);
  return JSON.parse(stdout);
}

it("a cluster's page has the threads of its workers, and keeps the counts of a worker that ends", async () => {
  const [first, second] = await outputOf('cluster-program.js');
  assert.match(first, /^jobs_total 6002$/m);
  assert.match(first, /^busy 4$/m);
  assert.match(second, /^jobs_total 6002$/m);
  assert.match(second, /^busy 2$/m);
});

it("a group's page has the threads of its members", async () => {
  const page = await outputOf('group-program.js');
  assert.match(page, /^jobs_total 4002$/m);
  assert.match(page, /^busy 4$/m);
});
