// npx vitest run example/testing/vitest.test.mjs

import { beforeEach, expect, test } from 'vitest';
import { register } from 'prom-client';
import { assertMetrics, lint, samples } from 'prom-client/testing';
import { runJob } from './jobs.js';

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
