'use strict';

// The metrics of a cluster scrape about itself, in situations that change them, and their table in
// docs/self-metrics.md. test/docs/self-metrics.test.js has its alerts.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const { once } = require('node:events');
const path = require('node:path');
const { describe, it } = require('node:test');
const { gunzipSync } = require('node:zlib');

const { startCluster, preloadFile, READ_ONLY, until } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');
const { ExpositionReader, missingReader } = require('../../fixtures/exposition-reader.js');
const { missingPrograms, promtoolCheckMetrics } = require('../../fixtures/prometheus-server.js');

const DOCUMENT = fs.readFileSync(path.join(__dirname, '../../../docs/self-metrics.md'), 'utf8');
const TAMPERING = path.join(__dirname, 'fixtures/cluster-tampering.js');
const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const PREFIX = 'prom_client_cluster_';

const required = process.env.REQUIRE_ALL === '1';
const withBoth = { skip: !required && (missingPrograms(['promtool']) ?? missingReader()) };

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
    state.counter.inc();
  },
};

/** The self-metrics of a page, without their common prefix. */
function selfOf(samples) {
  const own = [...samples].filter(([name]) => name.startsWith(PREFIX));
  return new Map(own.map(([name, value]) => [name.slice(PREFIX.length), value]));
}
const selfScrape = async (cluster, options) =>
  selfOf(await cluster.scrape({ selfMetrics: true, ...options }));
const workersIn = self =>
  Object.fromEntries(
    ['fresh', 'stale', 'unresponsive', 'retired'].map(state => [
      state,
      self.get(`workers{state="${state}"}`),
    ]),
  );

/** How much each metric has grown that begins with a name, those that have. */
function growthOf(name, before, after) {
  const growth = [...after].map(([key, value]) => [key, value - (before.get(key) ?? 0)]);
  return Object.fromEntries(growth.filter(([key, value]) => key.startsWith(name) && value !== 0));
}

/** Lets a worker change its answers. */
const tamper = (cluster, workerId, change) =>
  cluster.inWorker(
    workerId,
    (context, tampering, change) => {
      const { state } = context;
      const { installTampering, changeFile } = context.require(tampering);
      if (state.send === undefined) installTampering(context);
      state.tamper = (message, spool) =>
        new Function('message', 'spool', 'changeFile', `return (${change})(message, spool, changeFile)`)(
          message,
          spool,
          changeFile,
        );
    },
    TAMPERING,
    String(change),
  );
const answerTruly = (cluster, workerId) =>
  cluster.inWorker(workerId, ({ state }) => void (state.tamper = undefined));
const withError = ({ type, requestId }) => ({ type, requestId, error: 'it has none' });
const withBrokenSnapshot = ({ type, requestId }) => {
  return { type, requestId, source: Buffer.alloc(256, 1).toString('base64'), reason: 'a test' };
};

describe('self-metrics of a cluster', () => {
  const shared = sharedCluster({ workers: 2, worker: counting, options: { activeSeries: true } });

  /** The page in both formats; several registries of a primary share their aggregator. */
  const pages = () =>
    shared().run(async ({ client, setup }, openMetrics) => {
      const registries = [undefined, openMetrics].map(
        contentType => new client.AggregatorRegistry(contentType, setup.options),
      );
      const [text, openMetricsText] = await Promise.all(
        registries.map(registry => registry.clusterMetrics({ selfMetrics: true })),
      );
      await Promise.all(registries.map(registry => registry.close()));
      return { text, openMetricsText };
    }, OPENMETRICS);

  /** What promtool and the strict OpenMetrics parser make of the self-metrics. */
  async function read(t) {
    const { text, openMetricsText } = await pages();
    assert.deepEqual(await promtoolCheckMetrics(ownPart(text)), { exitCode: 0, output: '' });
    const reader = new ExpositionReader();
    t.after(() => reader.stop());
    const families = await reader.read(openMetricsText, 'openmetrics');
    return families.filter(({ name }) => name.startsWith(PREFIX));
  }

  let quiet;

  it(
    'self-metrics of a cluster without problems are accepted by promtool and the OpenMetrics parser',
    withBoth,
    async t => {
      quiet = await read(t);
      assert.equal(quiet.length, 13);
    },
  );

  it('self-metrics are in pages of metricsHandler() by default, and in clusterMetrics() on request', async () => {
    const cluster = shared();
    const ports = await cluster.run(async ({ require, client, aggregator, state }) => {
      const { createServer } = require('node:http');
      const { metricsHandler } = client;
      const handlers = [
        metricsHandler(aggregator),
        metricsHandler(aggregator, {}),
        metricsHandler(aggregator, { selfMetrics: false }),
        metricsHandler(client.register),
      ];
      new client.Gauge({ name: 'of_the_primary', help: 'h' });
      state.servers = handlers.map(handler => createServer(handler).listen(0, '127.0.0.1'));
      await Promise.all(
        state.servers.map(server => new Promise(resolve => server.once('listening', resolve))),
      );
      return state.servers.map(server => server.address().port);
    });
    const pages = await Promise.all(
      ports.map(async port => {
        const headers = { 'accept-encoding': 'gzip' };
        const request = http.get({ host: '127.0.0.1', port, agent: false, headers });
        const [response] = await once(request, 'response');
        return gunzipSync(Buffer.concat(await response.toArray())).toString();
      }),
    );
    const has = text => /^prom_client_cluster_workers\{state="fresh"\} 2$/m.test(text);
    assert.deepEqual(pages.map(has), [true, true, false, false]);
    assert.ok(!pages[2].includes(PREFIX) && !pages[3].includes(PREFIX));
    const shown = pages.map(page => page.includes('done_total 2'));
    assert.deepEqual(shown, [true, true, true, false]);

    const asked = await cluster.run(async ({ aggregator, state }) => {
      state.servers.forEach(server => server.close());
      // All in one round: each gets what it has asked for.
      return Promise.all([
        aggregator.clusterMetrics(),
        aggregator.clusterMetrics({ selfMetrics: true }),
        aggregator.clusterMetrics({ selfMetrics: false }),
        aggregator.clusterMetrics(() => {}),
        aggregator.clusterMetricsBytes().then(page => page.toString()),
        aggregator.clusterMetricsBytes({ selfMetrics: true }).then(page => page.toString()),
      ]);
    });
    assert.deepEqual(asked.map(has), [false, true, false, false, false, true]);
    assert.equal(new Set(asked).size, 2);
    assert.equal(asked[1].slice(0, asked[0].length), asked[0], 'they follow the metrics of the workers');
  });

  it('prom_client_cluster_workers counts workers by state, oldest_numbers_age_seconds their oldest numbers', async () => {
    const cluster = shared();
    const [stopped, killed] = [await cluster.fork(), await cluster.fork()];
    const first = await selfScrape(cluster);
    assert.deepEqual(workersIn(first), { fresh: 4, stale: 0, unresponsive: 0, retired: 0 });

    await tamper(cluster, 2, withError);
    await cluster.signal(stopped, 'SIGSTOP');
    await cluster.killWorker(killed);
    // It times out in this scrape, on whose page it is stale, and is unresponsive afterwards.
    const late = await selfScrape(cluster, { without: [stopped] });
    assert.deepEqual(workersIn(late), { fresh: 1, stale: 2, unresponsive: 0, retired: 1 });
    const second = await selfScrape(cluster);
    assert.deepEqual(workersIn(second), { fresh: 1, stale: 1, unresponsive: 1, retired: 1 });

    await answerTruly(cluster, 2);
    await cluster.signal(stopped, 'SIGCONT');
    await until(async () => (await cluster.internals()).unresponsive === 0, 'it has answered');
    const third = await selfScrape(cluster);
    assert.deepEqual(workersIn(third), { fresh: 3, stale: 0, unresponsive: 0, retired: 1 });
    const ages = [first, second, third].map(self => self.get('oldest_numbers_age_seconds'));
    assert.ok(ages[1] > ages[0] && ages[1] > ages[2], `the stopped worker has the oldest numbers: ${ages}`);
    await cluster.killWorker(stopped);
  });

  it('collect_duration_seconds and merge_duration_seconds count each scrape', async () => {
    const cluster = shared();
    const before = await selfScrape(cluster);
    for (let i = 0; i < 2; i++) await cluster.scrape();
    const self = await selfScrape(cluster);
    for (const name of ['collect_duration_seconds', 'merge_duration_seconds']) {
      assert.equal(self.get(`${name}_count`), before.get(`${name}_count`) + 3);
      assert.equal(self.get(`${name}_bucket{le="+Inf"}`), self.get(`${name}_count`));
      assert.ok(self.get(`${name}_sum`) > before.get(`${name}_sum`));
    }
    const quick = 'collect_duration_seconds_bucket{le="0.25"}';
    await cluster.signal(2, 'SIGSTOP');
    await cluster.scrape({ without: [2] });
    const after = await selfScrape(cluster);
    assert.equal(after.get('collect_duration_seconds_count'), self.get('collect_duration_seconds_count') + 2);
    assert.ok(after.get(quick) <= self.get(quick) + 1);
    const waited = after.get('collect_duration_seconds_sum') - self.get('collect_duration_seconds_sum');
    assert.ok(waited >= 300, `it waited ${waited} s for the stopped worker`);
    await cluster.signal(2, 'SIGCONT');
    await until(async () => (await cluster.internals()).unresponsive === 0, 'it has answered');
  });

  it('snapshot_bytes is the size of the last snapshots of all workers', async () => {
    const cluster = shared();
    await cluster.inWorker(2, ({ client }) => {
      const many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 1000; number++) many.inc({ number });
    });
    const sizes = ({ answers }) =>
      answers.splice(0).flatMap(({ message }) => (message.bytes === undefined ? [] : [message.bytes]));
    for (const least of [8_000, 8_000]) {
      await cluster.run(sizes);
      const size = (await selfScrape(cluster)).get('snapshot_bytes');
      const announced = await cluster.run(sizes);
      assert.equal(announced.length, 2);
      assert.equal(size, announced[0] + announced[1]);
      assert.ok(size > least, `${size}`);
    }
    await cluster.inWorker(2, ({ client }) => client.register.removeSingleMetric('many_total'));
  });

  it('active_series counts the label sets of each metric once for all workers, whatever its type, on request', async t => {
    const cluster = shared();
    const record = ({ client }, id) => {
      const options = { help: 'h', labelNames: ['path'] };
      const sizes = new client.Histogram({ name: 'sizes', ...options });
      for (const path of ['both', id]) sizes.observe({ path }, 1);
      new client.Gauge({ name: 'unused', ...options });
      client.register.registerMetric({
        name: 'custom',
        get: () => ({ name: 'custom', help: 'h', type: 'gauge', values: [{ value: 1, labels: { id } }] }),
      });
    };
    for (const id of [1, 2]) await cluster.inWorker(id, record, id);
    const self = await selfScrape(cluster);
    const counts = growthOf('active_series', new Map([['active_series{metric="unused"}', -1]]), self);
    assert.deepEqual(counts, {
      'active_series{metric="done_total"}': 1,
      'active_series{metric="sizes"}': 3,
      'active_series{metric="unused"}': 1,
      'active_series{metric="custom"}': 2,
    });
    await cluster.inWorkers([1, 2], ({ client }) => {
      for (const name of ['sizes', 'unused', 'custom']) client.register.removeSingleMetric(name);
    });
    const other = await startCluster(t, { workers: 1, worker: counting });
    assert.deepEqual(growthOf('active_series', new Map(), await selfScrape(other)), {});
    await other.end();
  });

  it('expired_series_total counts what workers have dropped, dead ones too; that is no failure', async () => {
    const cluster = shared();
    const killed = await cluster.fork();
    const drop = async ({ client, require, state }) => {
      const { MovedClock } = require('./idle-clock');
      state.clock = new MovedClock();
      const options = { name: 'idle', help: 'h', labelNames: ['a'], maxIdleSeconds: 600 };
      const gauge = new client.Gauge(options);
      for (let a = 0; a < 3; a++) gauge.set({ a }, a);
      await state.clock.move(720);
    };
    const before = await selfScrape(cluster);
    await cluster.inWorkers([1, killed], drop);
    const expected = { 'expired_series_total{metric="idle"}': 6 };
    const growth = async () => {
      const self = await selfScrape(cluster);
      assert.deepEqual(growthOf('failures_total', before, self), {});
      return growthOf('expired_series_total', before, self);
    };
    assert.deepEqual(await growth(), expected);
    await cluster.killWorker(killed);
    assert.deepEqual(await growth(), expected);
    await cluster.inWorker(1, ({ client }) => client.register.removeSingleMetric('idle'));
  });

  it('failures_total counts failures of workers by stage and metric, and keeps those of dead workers', async () => {
    const cluster = shared();
    const killed = await cluster.fork();
    const before = await selfScrape(cluster);
    await cluster.inWorkers([1, killed], ({ client }) => {
      const collect = () => {
        throw new Error('it throws');
      };
      new client.Gauge({ name: 'throws', help: 'h', collect });
      const limited = new client.Counter({
        name: 'limited_total',
        help: 'h',
        labelNames: ['a'],
        maxSeries: 2,
      });
      for (let a = 0; a < 5; a++) limited.inc({ a });
    });
    await cluster.inWorker(killed, ({ client }) => {
      new client.Gauge({ name: 'rejects', help: 'h', collect: () => Promise.reject(new Error('no')) });
    });
    await cluster.scrape();
    const expected = {
      'failures_total{metric="throws",stage="collect"}': 4,
      'failures_total{metric="rejects",stage="collect"}': 2,
      'failures_total{metric="limited_total",stage="max-series"}': 6,
    };
    assert.deepEqual(growthOf('failures_total', before, await selfScrape(cluster)), expected);
    await cluster.killWorker(killed);
    expected['failures_total{metric="throws",stage="collect"}']++;
    assert.deepEqual(growthOf('failures_total', before, await selfScrape(cluster)), expected);
    await cluster.inWorker(1, ({ client }) => {
      for (const name of ['throws', 'limited_total']) client.register.removeSingleMetric(name);
    });
  });

  it('refused_answers_total counts unusable answers by reason; their worker is stale, with its earlier numbers', async () => {
    const cluster = shared();
    const before = await cluster.scrape({ selfMetrics: true });
    await cluster.inWorker(2, ({ state }) => state.counter.inc());
    for (const [reason, change] of [
      ['magic', withBrokenSnapshot],
      ['worker-error', withError],
    ]) {
      await tamper(cluster, 2, change);
      const earlier = await selfScrape(cluster);
      const samples = await cluster.scrape({ selfMetrics: true });
      assert.deepEqual(growthOf('refused_answers_total', earlier, selfOf(samples)), {
        [`refused_answers_total{reason="${reason}"}`]: 1,
      });
      assert.equal(samples.get('done_total'), before.get('done_total'));
      const { fresh, stale, unresponsive } = workersIn(selfOf(samples));
      assert.deepEqual({ fresh, stale, unresponsive }, { fresh: 1, stale: 1, unresponsive: 0 });
    }
    await answerTruly(cluster, 2);
    assert.equal((await cluster.scrape()).get('done_total'), before.get('done_total') + 1);
  });

  it('lost_threads_total counts threads that were lost', async () => {
    const cluster = shared();
    const before = (await selfScrape(cluster)).get('lost_threads_total');
    for (let lost = 1; lost <= 2; lost++) {
      await cluster.run(({ threads }) => threads.at(-1).terminate());
      const self = await selfScrape(cluster);
      assert.equal(self.get('lost_threads_total'), before + lost);
      assert.equal(workersIn(self).fresh, 2);
    }
  });

  it(
    'self-metrics of a cluster with every problem are accepted by promtool and the OpenMetrics parser',
    withBoth,
    async t => {
      const busy = await read(t);
      const nameAndType = ({ name, type }) => [name, type];
      assert.deepEqual(busy.map(nameAndType), quiet.map(nameAndType));
      for (const { name, help, samples } of busy) {
        assert.ok(help.length > 20, name);
        assert.ok(samples.length > 0, `${name} has a sample`);
      }
    },
  );

  it('series of known states, stages and reasons are on the first page, with the value 0', async t => {
    const cluster = await startCluster(t, { workers: 1, worker: counting });
    const self = await selfScrape(cluster);
    const lib = path.join(__dirname, '../../../lib');
    const sources = fs.readdirSync(lib, { recursive: true }).filter(name => name.endsWith('.js'));
    const text = sources.map(name => fs.readFileSync(path.join(lib, name), 'utf8')).join('');
    const snapshotParts = text.matchAll(/new SnapshotError\(\s*'([a-z-]+)'/g);
    const codes = [...new Set(Array.from(snapshotParts, ([, code]) => code))];
    assert.ok(codes.length > 8, codes.join());
    for (const reason of [...codes, 'exit-log', 'ENOENT', 'worker-error', 'save-retired']) {
      assert.equal(self.get(`refused_answers_total{reason="${reason}"}`), 0, reason);
    }
    const stages = text.matchAll(/countFailure\(\s*'([a-z-]+)'|\['(max-series)'|'(collect)'/g);
    for (const [, ...groups] of stages) {
      const stage = groups.find(group => group !== undefined);
      assert.equal(self.get(`failures_total{metric="",stage="${stage}"}`), 0, stage);
    }
    assert.equal(self.get('snapshots_over_ipc_total{reason="ENOSPC"}'), 0);
    for (const reason of ['option', 'missing', 'start']) {
      assert.equal(self.get(`in_place{reason="${reason}"}`), 0, reason);
    }
    const reasons = [...self.keys()].flatMap(key => /^refused.*reason="(?:exit-)?(.*)"/.exec(key)?.[1] ?? []);
    for (const reason of reasons) assert.ok(DOCUMENT.includes(`\`${reason}\``), reason);
    await cluster.end();
  });

  it('docs/self-metrics.md has each metric with its type, labels and label values, and an alert', async () => {
    const text = ownPart(await shared().text({ selfMetrics: true }));
    const types = Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name, type]) => [name, type]);
    const table = Array.from(
      DOCUMENT.matchAll(/^\| `(prom_client_cluster_\w+)` +\| (\w+) +\| (.*?) +\| /gm),
      ([, name, type, labels]) => ({ name, type, labels: labels.match(/\w+/g) ?? [] }),
    );
    const inClusters = table.filter(({ name }) => !name.startsWith(`${PREFIX}group_`));
    const seen = inClusters.map(({ name, type }) => [name, type]);
    assert.deepEqual(seen, types);
    for (const { name, labels } of inClusters) {
      const sample = new RegExp(`^${name}(?:_bucket)?(?:\\{(.*?)\\})? `, 'm').exec(text);
      const found = Array.from((sample[1] ?? '').matchAll(/(\w+)="/g), ([, label]) => label);
      const shown = found.filter(label => label !== 'le');
      assert.deepEqual(shown, labels, name);
      assert.ok(new RegExp(`expr: .*\\b${name}(_bucket)?\\b`).test(DOCUMENT), `an alert on ${name}`);
    }
    const used = new Set(Array.from(DOCUMENT.matchAll(/\bprom_client_cluster_\w+/g), ([name]) => name));
    const existing = new Set(table.flatMap(({ name }) => [name, `${name}_bucket`]));
    const actual = [...used].filter(name => !existing.has(name));
    assert.deepEqual(actual, []);
    const states = [...new Set(Array.from(text.matchAll(/state="(\w+)"/g), ([, state]) => state))];
    const documented = DOCUMENT.slice(DOCUMENT.indexOf('### States'), DOCUMENT.indexOf('### Stages'));
    assert.deepEqual(
      Array.from(documented.matchAll(/^\| `(\w+)` +\|/gm), ([, state]) => state).slice(1),
      states,
    );
  });
});

const ownPart = text => text.slice(text.indexOf(`# HELP ${PREFIX}`));

describe('self-metrics of other clusters', () => {
  it('self-metrics are absent in a cluster that never had a worker, and present if all workers are dead', async t => {
    const cluster = await startCluster(t, { worker: counting });
    assert.equal(await cluster.text({ selfMetrics: true }), '');
    await cluster.fork();
    const first = await selfScrape(cluster);
    assert.equal(workersIn(first).fresh, 1);
    const collected = first.get('collect_duration_seconds_count');
    assert.equal(first.get('merge_duration_seconds_count'), collected - 1, 'this page is not yet written');
    await cluster.killWorker(1);
    const self = await selfScrape(cluster);
    assert.deepEqual(workersIn(self), { fresh: 0, stale: 0, unresponsive: 0, retired: 1 });
    assert.equal(self.get('oldest_numbers_age_seconds'), 0);
    assert.equal(self.get('snapshot_bytes'), 0);
    await cluster.end();
  });

  it('snapshots_over_ipc_total counts all snapshots if the primary has no directory', async t => {
    const threadPreload = preloadFile(t, READ_ONLY);
    const cluster = await startCluster(t, { workers: 1, worker: counting, threadPreload });
    await cluster.scrape();
    const self = await selfScrape(cluster);
    assert.deepEqual(growthOf('snapshots_over_ipc_total', new Map(), self), {
      'snapshots_over_ipc_total{reason="the primary has no directory"}': 2,
    });
    assert.deepEqual(growthOf('refused_answers_total', new Map(), self), {});
    assert.equal(workersIn(self).fresh, 1);
    await cluster.end();
  });
});
