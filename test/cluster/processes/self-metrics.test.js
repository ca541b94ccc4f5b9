'use strict';

// What a cluster's page says about itself, in situations that are made for it; and the document that explains it.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const { once } = require('node:events');
const path = require('node:path');
const { promisify } = require('node:util');
const { describe, it } = require('node:test');
const { gunzipSync } = require('node:zlib');

const { startCluster, makePlace, until } = require('../../fixtures/cluster-harness.js');
const { ExpositionReader, missingReader } = require('../../fixtures/exposition-reader.js');
const { assertAlertsFire } = require('../../fixtures/alert-tests.js');
const { missingPrograms, promtoolCheckMetrics } = require('../../fixtures/prometheus-server.js');

const DOCUMENT = fs.readFileSync(path.join(__dirname, '../../../docs/self-metrics.md'), 'utf8');
const [, RULES] = /^```yaml\n([^]*?)^```$/m.exec(DOCUMENT);
const TAMPERING = path.join(__dirname, '../../fixtures/cluster-tampering.js');
const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const PREFIX = 'prom_client_cluster_';

const required = process.env.REQUIRE_PROMETHEUS === '1';
const withPromtool = { skip: !required && missingPrograms(['promtool']) };
const withBoth = { skip: !required && (missingPrograms(['promtool']) ?? missingReader()) };

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
    state.counter.inc();
  },
};
const start = (t, setup) => startCluster(t, { workers: 2, worker: counting, ...setup });

/** The metrics of a page about itself, without what all their names begin with. */
function selfOf(samples) {
  const own = [...samples].filter(([name]) => name.startsWith(PREFIX));
  return new Map(own.map(([name, value]) => [name.slice(PREFIX.length), value]));
}
const selfScrape = async (cluster, options) =>
  selfOf(await cluster.scrape({ selfMetrics: true, ...options }));
const workersIn = self =>
  Object.fromEntries(
    ['fresh', 'stale', 'silent', 'retired'].map(state => [state, self.get(`workers{state="${state}"}`)]),
  );
const startingWith = (self, name) => Object.fromEntries([...self].filter(([key]) => key.startsWith(name)));

/** Lets a worker send something else than its answers. */
const tamper = (cluster, workerId, change) =>
  cluster.inWorker(
    workerId,
    (context, tampering, change) => {
      const { installTampering, changeFile } = context.require(tampering);
      installTampering(context);
      context.state.tamper = (message, spool) =>
        new Function('message', 'spool', 'changeFile', `return (${change})(message, spool, changeFile)`)(
          message,
          spool,
          changeFile,
        );
    },
    TAMPERING,
    String(change),
  );
const anError = ({ type, requestId }) => ({ type, requestId, error: 'it has none' });
const aBrokenFile = (message, spool, changeFile) =>
  changeFile(message, spool, bytes => {
    bytes.fill(0, 0, 4);
  });

/** Preloaded by a thread that shall find no place for its directory. */
function readOnly(t) {
  const preload = path.join(makePlace(t), 'preload.js');
  const source = `
    const fs = require('node:fs');
    for (const name of ['mkdirSync', 'mkdtempSync']) {
      fs[name] = () => {
        throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
      };
    }`;
  fs.writeFileSync(preload, source);
  return preload;
}

describe('metrics of the scrape itself', { concurrency: 3 }, () => {
  it('are on a page of metricsHandler() unless it is told otherwise, and not in clusterMetrics() unless it is', async t => {
    const cluster = await start(t);
    const ports = await cluster.run(async ({ require, client, aggregator, state }) => {
      const { createServer } = require('node:http');
      const { metricsHandler } = client;
      const handlers = [
        metricsHandler(aggregator),
        metricsHandler(aggregator, {}),
        metricsHandler(aggregator, { selfMetrics: false }),
        metricsHandler(client.register),
      ];
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
    assert.deepEqual(
      pages.map(page => page.includes('done_total 2')),
      [true, true, true, false],
    );

    const asked = await cluster.run(async ({ aggregator, state }) => {
      state.servers.forEach(server => server.close());
      // All in one round: each gets what it has asked for.
      return Promise.all([
        aggregator.clusterMetrics(),
        aggregator.clusterMetrics({ selfMetrics: true }),
        aggregator.clusterMetrics({ selfMetrics: false }),
        aggregator.clusterMetrics(() => {}),
        aggregator.clusterMetricsBytes().then(({ bytes }) => bytes.toString()),
        aggregator.clusterMetricsBytes({ selfMetrics: true }).then(({ bytes }) => bytes.toString()),
      ]);
    });
    assert.deepEqual(asked.map(has), [false, true, false, false, false, true]);
    assert.equal(new Set(asked).size, 2);
    assert.equal(asked[1].slice(0, asked[0].length), asked[0], 'they come after the metrics of the workers');
    await cluster.end();
  });

  it('come also where a function of the program aggregates', async t => {
    const cluster = await start(t);
    await cluster.run(({ client }) => {
      client.aggregators.own = ([{ name, help, type }]) => {
        return { name, help, type, values: [{ value: 4, labels: {} }] };
      };
    });
    await cluster.inWorkers([1, 2], ({ client }) => {
      new client.Gauge({ name: 'open', help: 'h', aggregator: 'own' }).set(1);
    });
    const samples = await cluster.scrape({ selfMetrics: true });
    assert.equal(samples.get('open'), 4);
    assert.equal(selfOf(samples).get('workers{state="fresh"}'), 2);
    await cluster.end();
  });

  it('are not there in a cluster that never had a worker, and are in one whose workers are all dead', async t => {
    const cluster = await start(t, { workers: 0 });
    assert.equal(await cluster.text({ selfMetrics: true }), '');
    await cluster.fork();
    assert.equal(workersIn(await selfScrape(cluster)).fresh, 1);
    await cluster.signal(1, 'SIGKILL');
    await cluster.gone(1);
    const self = await selfScrape(cluster);
    assert.deepEqual(workersIn(self), { fresh: 0, stale: 0, silent: 0, retired: 1 });
    assert.equal(self.get('oldest_numbers_age_seconds'), 0);
    assert.equal(self.get('snapshot_bytes'), 0);
    await cluster.end();
  });

  it('count workers by what the page shows of them, and tell the age of the oldest numbers', async t => {
    const cluster = await start(t, { workers: 4 });
    const first = await selfScrape(cluster);
    assert.deepEqual(workersIn(first), { fresh: 4, stale: 0, silent: 0, retired: 0 });

    await tamper(cluster, 2, anError);
    await cluster.signal(3, 'SIGSTOP');
    await cluster.signal(4, 'SIGKILL');
    await cluster.gone(4);
    // It is silent when it has missed the deadline of a scrape; on the page of that scrape it is late.
    const late = await selfScrape(cluster, { without: [3] });
    assert.deepEqual(workersIn(late), { fresh: 1, stale: 2, silent: 0, retired: 1 });
    const second = await selfScrape(cluster);
    assert.deepEqual(workersIn(second), { fresh: 1, stale: 1, silent: 1, retired: 1 });

    await cluster.inWorker(2, ({ state }) => (state.tamper = undefined));
    await cluster.signal(3, 'SIGCONT');
    await until(async () => (await cluster.internals()).silent === 0, 'it has answered');
    const third = await selfScrape(cluster);
    assert.deepEqual(workersIn(third), { fresh: 3, stale: 0, silent: 0, retired: 1 });
    const ages = [first, second, third].map(self => self.get('oldest_numbers_age_seconds'));
    assert.ok(ages[1] > ages[0] && ages[1] > ages[2], `the numbers of worker 3 were the oldest: ${ages}`);
    await cluster.end();
  });

  it('tell the size of all snapshots together', async t => {
    const cluster = await start(t);
    await cluster.inWorker(2, ({ client }) => {
      const many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 1000; number++) many.inc({ number });
    });
    const sizes = ({ answers }) =>
      answers.splice(0).flatMap(({ message }) => (message.bytes === undefined ? [] : [message.bytes]));
    for (const least of [16_000, 8_000]) {
      await cluster.run(sizes);
      const size = (await selfScrape(cluster)).get('snapshot_bytes');
      const announced = await cluster.run(sizes);
      assert.equal(announced.length, 2);
      assert.equal(size, announced[0] + announced[1]);
      assert.ok(size > least, `${size}`);
    }
    await cluster.end();
  });

  it('tell how long workers took to answer, and how long it took to add up and write', async t => {
    const cluster = await start(t);
    for (let i = 0; i < 3; i++) await cluster.scrape();
    const self = await selfScrape(cluster);
    // This scrape is among those that have collected, and its page has not been written yet.
    assert.equal(self.get('collect_duration_seconds_count'), 4);
    assert.equal(self.get('merge_duration_seconds_count'), 3);
    for (const name of ['collect', 'merge']) {
      assert.equal(self.get(`${name}_duration_seconds_bucket{le="+Inf"}`), name === 'collect' ? 4 : 3);
      assert.ok(self.get(`${name}_duration_seconds_sum`) > 0);
    }
    const shortBefore = self.get('collect_duration_seconds_bucket{le="0.25"}');
    await cluster.signal(2, 'SIGSTOP');
    await cluster.scrape({ without: [2] });
    const after = await selfScrape(cluster);
    assert.equal(after.get('collect_duration_seconds_count'), 6);
    assert.ok(after.get('collect_duration_seconds_bucket{le="0.25"}') <= shortBefore + 1);
    assert.ok(
      after.get('collect_duration_seconds_sum') >= 300,
      'the time that it waited for the stopped worker',
    );
    await cluster.signal(2, 'SIGCONT');
    await cluster.end();
  });

  it('count failures of workers by stage and metric, those of dead ones, too', async t => {
    const cluster = await start(t);
    assert.deepEqual(startingWith(await selfScrape(cluster), 'failures_total'), {});
    await cluster.inWorkers([1, 2], ({ client }) => {
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
    await cluster.inWorker(2, ({ client }) => {
      new client.Gauge({ name: 'rejects', help: 'h', collect: () => Promise.reject(new Error('no')) });
    });
    await cluster.scrape();
    const expected = {
      'failures_total{metric="throws",stage="collect"}': 4,
      'failures_total{metric="rejects",stage="collect"}': 2,
      'failures_total{metric="limited_total",stage="max-series"}': 6,
    };
    assert.deepEqual(startingWith(await selfScrape(cluster), 'failures_total'), expected);
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    expected['failures_total{metric="throws",stage="collect"}']++;
    assert.deepEqual(startingWith(await selfScrape(cluster), 'failures_total'), expected);
    await cluster.end();
  });

  it('count answers that could not be used, by reason', async t => {
    const cluster = await start(t, { workers: 3 });
    assert.deepEqual(startingWith(await selfScrape(cluster), 'refused_answers_total'), {});
    await tamper(cluster, 2, anError);
    await tamper(cluster, 3, aBrokenFile);
    await cluster.scrape();
    const self = await selfScrape(cluster);
    assert.deepEqual(startingWith(self, 'refused_answers_total'), {
      'refused_answers_total{reason="worker-error"}': 2,
      'refused_answers_total{reason="magic"}': 2,
    });
    await cluster.end();
  });

  it('count a worker whose answer could not be used as stale', async t => {
    const cluster = await start(t);
    await cluster.scrape();
    await tamper(cluster, 2, aBrokenFile);
    await cluster.inWorker(2, ({ state }) => state.counter.inc());
    const samples = await cluster.scrape({ selfMetrics: true });
    assert.equal(samples.get('done_total'), 2, 'its earlier numbers are shown');
    assert.deepEqual(workersIn(selfOf(samples)), { fresh: 1, stale: 1, silent: 0, retired: 0 });
    await cluster.end();
  });

  it('count snapshots that came over IPC, by the reason why there was no file', async t => {
    const cluster = await start(t, { threadPreload: readOnly(t) });
    await cluster.scrape();
    const self = await selfScrape(cluster);
    assert.deepEqual(startingWith(self, 'snapshots_over_ipc_total'), {
      'snapshots_over_ipc_total{reason="the primary has no directory"}': 4,
    });
    assert.deepEqual(startingWith(self, 'refused_answers_total'), {});
    assert.equal(workersIn(self).fresh, 2);
    await cluster.end();
  });

  it('count snapshots of one worker that finds its disk full', async t => {
    const cluster = await start(t);
    await cluster.inWorker(2, ({ require }) => {
      const fs = require('node:fs');
      fs.writevSync = fs.writeSync = () => {
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      };
    });
    const self = await selfScrape(cluster);
    assert.equal(self.get('snapshots_over_ipc_total{reason="ENOSPC"}'), 1);
    assert.equal(self.get('failures_total{metric="",stage="write"}'), 1);
    await cluster.end();
  });

  it('count threads that were lost', async t => {
    const cluster = await start(t);
    assert.equal((await selfScrape(cluster)).get('lost_threads_total'), 0);
    for (let lost = 1; lost <= 2; lost++) {
      await cluster.run(({ threads }) => threads.at(-1).terminate());
      const self = await selfScrape(cluster);
      assert.equal(self.get('lost_threads_total'), lost);
      assert.equal(workersIn(self).fresh, 2);
    }
    await cluster.end();
  });

  it('count metrics that were left out for their type, in each scrape', async t => {
    const cluster = await start(t);
    assert.equal((await selfScrape(cluster)).get('conflicts_total'), 0);
    await cluster.inWorker(1, ({ client }) => void new client.Gauge({ name: 'mixed', help: 'h' }));
    await cluster.inWorker(2, ({ client }) => void new client.Histogram({ name: 'mixed', help: 'h' }));
    assert.equal((await selfScrape(cluster)).get('conflicts_total'), 1);
    assert.equal((await selfScrape(cluster)).get('conflicts_total'), 2);
    await cluster.end();
  });
});

/** A page on which every one of them has a sample. */
async function startWithEverything(t, setup) {
  const cluster = await start(t, { workers: 3, ...setup });
  await cluster.inWorker(1, ({ client }) => void new client.Gauge({ name: 'mixed', help: 'h' }));
  await cluster.inWorker(2, ({ client, require }) => {
    new client.Histogram({ name: 'mixed', help: 'h' });
    const collect = () => {
      throw new Error('it throws');
    };
    new client.Gauge({ name: 'throws', help: 'h', collect });
    const fs = require('node:fs');
    fs.writevSync = fs.writeSync = () => {
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    };
  });
  await tamper(cluster, 3, anError);
  await cluster.scrape();
  await cluster.run(({ threads }) => threads.at(-1).terminate());
  await cluster.scrape();
  return cluster;
}
const ownPart = text => text.slice(text.indexOf(`# HELP ${PREFIX}`));

describe('metrics of the scrape itself are understood', () => {
  it('by promtool, lint included, and by the strict OpenMetrics parser', withBoth, async t => {
    const clusters = {};
    for (const contentType of [undefined, OPENMETRICS]) {
      clusters[contentType ?? 'text'] = [
        await start(t, { contentType }),
        await startWithEverything(t, { contentType }),
      ];
    }
    for (const cluster of clusters.text) {
      const page = await cluster.text({ selfMetrics: true });
      assert.deepEqual(await promtoolCheckMetrics(ownPart(page)), { exitCode: 0, output: '' });
    }
    const reader = new ExpositionReader();
    t.after(() => reader.stop());
    const read = [];
    for (const cluster of clusters[OPENMETRICS]) {
      const families = await reader.read(await cluster.text({ selfMetrics: true }), 'openmetrics');
      read.push(families.filter(({ name }) => name.startsWith(PREFIX)));
    }
    const [quiet, busy] = read;
    assert.equal(quiet.length, 10);
    assert.deepEqual(
      busy.map(({ name, type }) => [name, type]),
      quiet.map(({ name, type }) => [name, type]),
    );
    for (const { name, help, samples } of busy) {
      assert.ok(help.length > 20, name);
      assert.ok(samples.length > 0, `${name} has a sample`);
    }
    await Promise.all(Object.values(clusters).flatMap(pair => pair.map(cluster => cluster.end())));
  });
});

describe('docs/self-metrics.md', () => {
  it('names each metric with its type, its labels and their values, and alerts on each', async t => {
    const cluster = await startWithEverything(t);
    const text = ownPart(await cluster.text({ selfMetrics: true }));
    const types = Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name, type]) => [name, type]);
    const table = Array.from(
      DOCUMENT.matchAll(/^\| `(prom_client_cluster_\w+)` +\| (\w+) +\| (.*?) +\| /gm),
      ([, name, type, labels]) => ({ name, type, labels: labels.match(/\w+/g) ?? [] }),
    );
    assert.deepEqual(
      table.map(({ name, type }) => [name, type]),
      types,
    );
    for (const { name, labels } of table) {
      const sample = new RegExp(`^${name}(?:_bucket)?(?:\\{(.*?)\\})? `, 'm').exec(text);
      const found = Array.from((sample[1] ?? '').matchAll(/(\w+)="/g), ([, label]) => label);
      assert.deepEqual(
        found.filter(label => label !== 'le'),
        labels,
        name,
      );
      assert.ok(new RegExp(`expr: .*\\b${name}(_bucket)?\\b`).test(DOCUMENT), `an alert on ${name}`);
    }
    const used = new Set(Array.from(DOCUMENT.matchAll(/\bprom_client_cluster_\w+/g), ([name]) => name));
    const known = new Set(table.flatMap(({ name }) => [name, `${name}_bucket`]));
    assert.deepEqual(
      [...used].filter(name => !known.has(name)),
      [],
    );
    const states = [...new Set(Array.from(text.matchAll(/state="(\w+)"/g), ([, state]) => state))];
    const documented = DOCUMENT.slice(DOCUMENT.indexOf('### States'), DOCUMENT.indexOf('### Stages'));
    assert.deepEqual(
      Array.from(documented.matchAll(/^\| `(\w+)` +\|/gm), ([, state]) => state).slice(1),
      states,
    );
    await cluster.end();
  });

  it('promtool accepts the alerts of docs/self-metrics.md', withPromtool, async t => {
    const file = path.join(makePlace(t), 'rules.yml');
    fs.writeFileSync(file, RULES);
    const { stdout } = await promisify(execFile)('promtool', ['check', 'rules', file]);
    assert.match(stdout, new RegExp(`SUCCESS: ${RULES.match(/^ +- alert: /gm).length} rules found`));
  });

  it('alerts of docs/self-metrics.md fire on bad values, and not on good ones', withPromtool, t =>
    assertAlertsFire(
      makePlace(t),
      RULES,
      Object.entries(BAD).map(([alert, series]) => {
        const prefixed = series.map(([name, values]) => [PREFIX + name, values]);
        return { alert, series: prefixed, quiet: '59m', firing: '110m' };
      }),
    ),
  );
});

/** A series of a sample each minute: quiet for an hour, and then as something is wrong. */
const BAD = {
  ClusterWorkerSilent: [['workers{state="silent"}', '0x60 1x60']],
  ClusterNoFreshWorker: [['workers{state="fresh"}', '4x60 0x60']],
  ClusterWorkerStale: [['workers{state="stale"}', '0x60 1x60']],
  ClusterWorkersDieOften: [['workers{state="retired"}', '2x60 3+1x60']],
  ClusterNumbersOld: [['oldest_numbers_age_seconds', '0.01x60 60+60x60']],
  ClusterSnapshotsLarge: [['snapshot_bytes', '1000000x60 200000000x60']],
  ClusterCollectSlow: durations('collect'),
  ClusterMergeSlow: durations('merge'),
  ClusterCollectHookFails: [['failures_total{stage="collect",metric="m"}', '1x60 2+1x60']],
  ClusterSeriesOverflow: [['failures_total{stage="max-series",metric="m"}', '1x60 2+1x60']],
  ClusterSnapshotNotWritten: [['failures_total{stage="checkpoint",metric=""}', '1x60 2+1x60']],
  ClusterMetricConflict: [['conflicts_total', '0x60 1+1x60']],
  ClusterAnswersRefused: [['refused_answers_total{reason="magic"}', '1x60 2+1x60']],
  ClusterThreadLost: [['lost_threads_total', '0x60 1x60']],
  ClusterSnapshotsOverIpc: [['snapshots_over_ipc_total{reason="ENOSPC"}', '1x60 2+1x60']],
};

/** A scrape a minute that takes less than 0.1 seconds, and then more than 2.5. */
function durations(name) {
  const bucket = le => `${name}_duration_seconds_bucket{le="${le}"}`;
  return [
    [bucket('0.1'), '0+1x60 60x60'],
    [bucket('2.5'), '0+1x60 60x60'],
    [bucket('5'), '0+1x60 61+1x60'],
    [bucket('+Inf'), '0+1x60 61+1x60'],
  ];
}
