'use strict';

// Default metrics of the runtime on a cluster's page: what the numbers of several workers become, and those of workers
// that are gone.

const assert = require('node:assert/strict');
const { it } = require('node:test');

const { startCluster } = require('../fixtures/cluster-harness.js');

/** A worker with all metrics, whose control group is one of the test's own, and half as old as it is. */
const collecting = {
  construct: true,
  start: ({ client, require, process, program }) => {
    const fs = require('node:fs');
    const { readFileSync, existsSync } = fs;
    const files = {
      '/proc/self/cgroup': '0::/\n',
      '/sys/fs/cgroup/cgroup.controllers': 'cpu memory\n',
      '/sys/fs/cgroup/memory.max': '1000000000\n',
      '/sys/fs/cgroup/memory.current': '400000000\n',
      '/sys/fs/cgroup/cpu.max': '150000 100000\n',
      '/sys/fs/cgroup/cpu.stat': 'nr_periods 70\nnr_throttled 7\nthrottled_usec 2500000\n',
    };
    fs.readFileSync = (name, ...rest) => files[name] ?? readFileSync(name, ...rest);
    fs.existsSync = name => name in files || existsSync(name);
    client.collectDefaultMetrics({ runtime: true, labels: program.labelled ? { worker: process.pid } : {} });
  },
};

/** What a worker's own page says, read together with nothing else. */
async function ownOf(cluster, worker) {
  const json = await cluster.inWorker(worker, async ({ client }) => client.register.getMetricsAsJSON());
  return name => json.find(metric => metric.name === name).values;
}

it('adds up what can be added, and shows what all share once', async t => {
  const cluster = await startCluster(t, { workers: 2, worker: collecting });
  const uptimes = [];
  const limits = [];
  for (const worker of [1, 2]) {
    const values = await ownOf(cluster, worker);
    limits.push(values('nodejs_heap_limit_bytes')[0].value);
    uptimes.push(values('process_uptime_seconds')[0].value);
  }
  await cluster.inWorkers([1, 2], ({ require }) => {
    const vm = require('node:vm');
    require('node:v8').setFlagsFromString('--expose-gc');
    const gc = vm.runInNewContext('gc');
    for (let i = 0; i < 6; i++) gc();
  });
  const samples = await cluster.scrape();
  const own = await Promise.all([1, 2].map(worker => ownOf(cluster, worker)));
  const sumOf = (name, kind) =>
    own.reduce((sum, values) => sum + values(name).find(({ labels }) => labels.kind === kind).value, 0);

  assert.equal(samples.get('nodejs_heap_limit_bytes'), limits[0] + limits[1]);
  assert.ok(samples.get('nodejs_gc_runs_total{kind="major"}') >= 12);
  assert.ok(samples.get('nodejs_gc_runs_total{kind="major"}') <= sumOf('nodejs_gc_runs_total', 'major'));
  const pauses = samples.get('nodejs_gc_pause_seconds_total{kind="major"}');
  assert.ok(pauses > 0 && pauses <= sumOf('nodejs_gc_pause_seconds_total', 'major') + 1e-9);
  assert.ok(samples.get('nodejs_gc_reclaimed_bytes_total{kind="major"}') >= 0);
  // Both have lived for as long; the page has been made after their own.
  const active = samples.get('nodejs_eventloop_active_seconds_total');
  const idle = samples.get('nodejs_eventloop_idle_seconds_total');
  const uptime = samples.get('process_uptime_seconds');
  assert.ok(uptime >= Math.min(...uptimes) && uptime < uptimes[0] + uptimes[1] + 30);
  assert.ok(active > 0 && active + idle < 2 * uptime + 10);
  const [count, inf] = ['count', 'bucket{le="+Inf"}'].map(end =>
    samples.get(`nodejs_eventloop_delay_seconds_${end}`),
  );
  assert.equal(count, inf);
  for (const [name, value] of Object.entries({
    memory_limit_bytes: 1e9,
    memory_usage_bytes: 4e8,
    cpu_quota_cores: 1.5,
    cpu_throttled_seconds_total: 2.5,
    cpu_periods_total: 70,
    cpu_throttled_periods_total: 7,
  })) {
    assert.equal(samples.get(`process_cgroup_${name}`), value, name);
  }
  await cluster.end();
});

it('forgets limits, sizes and uptime of workers that are gone, and keeps what they counted', async t => {
  const cluster = await startCluster(t, { workers: 2, worker: collecting });
  const both = await cluster.scrape();
  await cluster.inWorker(1, $ => $.afterwards(() => $.process.exit()));
  await cluster.gone(1);
  const one = await cluster.scrape();
  assert.equal(one.get('nodejs_heap_limit_bytes') * 2, both.get('nodejs_heap_limit_bytes'));
  assert.ok(
    one.get('nodejs_heap_space_used_bytes{space="old"}') <
      0.8 * both.get('nodejs_heap_space_used_bytes{space="old"}'),
  );
  const own = await ownOf(cluster, 2);
  assert.ok(one.get('process_uptime_seconds') <= own('process_uptime_seconds')[0].value);
  assert.ok(one.get('process_uptime_seconds') >= both.get('process_uptime_seconds'));
  for (const name of both.keys()) {
    if (!/^nodejs_(gc|eventloop_(active|idle|delay))|_total($|\{)/.test(name)) continue;
    if (/nodejs_active/.test(name)) continue;
    assert.ok(one.get(name) >= both.get(name), `${name} fell from ${both.get(name)} to ${one.get(name)}`);
  }
  assert.equal(one.get('process_cgroup_cpu_periods_total'), 70);

  // A new one is the youngest.
  const third = await cluster.fork();
  const young = await cluster.scrape();
  assert.equal(young.get('nodejs_heap_limit_bytes'), both.get('nodejs_heap_limit_bytes'));
  assert.ok(young.get('process_uptime_seconds') < one.get('process_uptime_seconds'));
  assert.equal(young.get('process_cgroup_cpu_throttled_periods_total'), 7, `worker ${third}`);
  await cluster.end();
});

it('shows each worker where they have a label of their own', async t => {
  const cluster = await startCluster(t, { workers: 2, worker: { ...collecting, labelled: true } });
  const samples = await cluster.scrape();
  const limits = [...samples.keys()].filter(name => name.startsWith('nodejs_heap_limit_bytes{worker='));
  assert.equal(limits.length, 2);
  await cluster.end();
});
