'use strict';

// npx jest example/testing/jest.test.js

const { beforeEach, expect, test } = require('@jest/globals');
const { register } = require('prom-client');
const { assertMetrics, lint, samples } = require('prom-client/testing');
const { runJob } = require('./jobs');

beforeEach(() => register.resetMetrics());

test('jobs are counted by their result', async () => {
  await runJob('mail', async () => {});
  await runJob('mail', () => Promise.reject(new Error('no such address')));
  await assertMetrics(
    register,
    `
      jobs_total{queue="mail",result="done"} 1
      jobs_total{queue="mail",result="failed"} 1
    `,
    'jobs_total',
  );
});

test('failed jobs have a duration', async () => {
  await runJob('import', () => Promise.reject(new Error('no such file')));
  expect(await samples(register, 'job_duration_seconds')).toContainEqual({
    name: 'job_duration_seconds_count',
    labels: { queue: 'import' },
    value: 1,
  });
});

test('the metrics follow the conventions of Prometheus', async () => {
  expect(await lint(register)).toEqual([]);
});
