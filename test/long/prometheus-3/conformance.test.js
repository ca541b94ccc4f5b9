'use strict';

// Tests against Prometheus with version 3, which build.sh builds.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { describe, it } = require('node:test');
const { PROMETHEUS, skip } = require('./built-prometheus');

const TESTS = path.join(__dirname, '../..');

describe('conformance to Prometheus 3', { skip }, () => {
  for (const file of [
    'package/remote-write-prometheus',
    'package/conformance-prometheus',
    'package/idle-series-prometheus',
  ]) {
    it(file, () => {
      const test = path.join(TESTS, `${file}.test.js`);
      const { status, stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', test], {
        env: { ...process.env, PROMETHEUS, REQUIRE_ALL: '1', NODE_TEST_CONTEXT: undefined },
        encoding: 'utf8',
        maxBuffer: 2 ** 28,
      });
      assert.equal(status, 0, stdout);
    });
  }
});
