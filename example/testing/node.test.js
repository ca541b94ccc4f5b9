'use strict';

// node --test example/testing/node.test.js

const assert = require('node:assert');
const { beforeEach, test } = require('node:test');
const { register } = require('prom-client');
const { assertMetrics, lint, samples } = require('prom-client/testing');
const { runJob } = require('./jobs');

beforeEach(() => register.resetMetrics());

test('jobs are counted by their result', async () => {
  await runJob('mail', async () => {});
  await runJob('mail', async () => {});
  await runJob('mail', async () => {
    throw new Error('no such address');
  });
  await assertMetrics(
    register,
    `
      jobs_total{queue="mail",result="done"} 2
      jobs_total{queue="mail",result="failed"} 1
    `,
    'jobs_total',
  );
});

test('failed jobs have a duration', async () => {
  await runJob('import', () => Promise.reject(new Error('no such file')));
  const count = (await samples(register, 'job_duration_seconds')).find(({ name }) => name.endsWith('_count'));
  assert.deepStrictEqual(count, {
    name: 'job_duration_seconds_count',
    labels: { queue: 'import' },
    value: 1,
  });
});

test('the metrics follow the conventions of Prometheus', async () => {
  assert.deepStrictEqual(await lint(register), []);
});
