'use strict';

// Runtime metrics of a cluster: how the values of living and of exited workers are aggregated.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { sharedCluster } = require('../fixtures/shared-cluster.js');

/** Workers with all runtime metrics, and the files of a cgroup of the test's own. */
const collecting = {
  construct: true,
  start: ({ client, require }) => {
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
    client.collectDefaultMetrics({ runtime: true });
  },
};

/** The values of a worker's own registry. */
async function ownOf(cluster, worker) {
  const json = await cluster.inWorker(worker, async ({ client }) => client.register.getMetricsAsJSON());
  return name => json.find(metric => metric.name === name).values;
}

describe('runtime metrics in a cluster', () => {
  const shared = sharedCluster({ workers: 2, worker: collecting });

  it('a cluster sums the runtime metrics of its workers, and shows those of their cgroup once', async () => {
    const cluster = shared();
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
    const active = samples.get('nodejs_eventloop_active_seconds_total');
    const idle = samples.get('nodejs_eventloop_idle_seconds_total');
    const uptime = samples.get('process_uptime_seconds');
    const laterUptimes = own.map(values => values('process_uptime_seconds')[0].value);
    assert.ok(uptime >= Math.min(...uptimes) && uptime <= Math.min(...laterUptimes));
    assert.ok(active > 0 && active + idle <= laterUptimes[0] + laterUptimes[1]);
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
  });

  it('a cluster drops limits, sizes and uptime of exited workers, and keeps their counts', async () => {
    const cluster = shared();
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

    // The new worker is the youngest.
    const third = await cluster.fork();
    const young = await cluster.scrape();
    assert.equal(young.get('nodejs_heap_limit_bytes'), both.get('nodejs_heap_limit_bytes'));
    const [oldUptime, newUptime] = await Promise.all(
      [2, third].map(async worker => (await ownOf(cluster, worker))('process_uptime_seconds')[0].value),
    );
    assert.ok(young.get('process_uptime_seconds') <= newUptime && newUptime < oldUptime);
    assert.equal(young.get('process_cgroup_cpu_throttled_periods_total'), 7, `worker ${third}`);
  });
});
