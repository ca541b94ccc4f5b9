'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { it } = require('node:test');
const { promisify } = require('node:util');

it("a cluster's page has the threads of its workers, and keeps the counts of a worker that ends", async () => {
  const program = path.join(__dirname, 'fixtures/cluster-program.js');
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  const [first, second] = JSON.parse(stdout);
  assert.match(first, /^jobs_total 6002$/m);
  assert.match(first, /^busy 4$/m);
  assert.match(second, /^jobs_total 6002$/m);
  assert.match(second, /^busy 2$/m);
});
