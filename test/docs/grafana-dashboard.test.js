'use strict';

// docs/grafana-dashboard.json: a real Prometheus, which scrapes the demo's cluster under load and a single
// process, has data for each query.

const assert = require('node:assert');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');
const { after, before, describe, it } = require('node:test');
const { Registry, collectDefaultMetrics, metricsHandler } = require('../..');
const { ClusterProcess } = require('../../example/demo/cluster-process');
const { LoadGenerator } = require('../../example/demo/load-generator');
const { PrometheusServer, missingPrograms } = require('../fixtures/prometheus-server');

const ROOT = path.join(__dirname, '../..');
const FAULTS = path.join(__dirname, 'fixtures/grafana-dashboard-faults.js');
const DASHBOARD = JSON.parse(read('docs/grafana-dashboard.json'));
// A collapsed row has its panels in it, an open one before the next row.
const ALL = DASHBOARD.panels.flatMap(panel => [panel, ...(panel.panels ?? [])]);
const PANELS = ALL.filter(({ type }) => type !== 'row');
const ROWS = DASHBOARD.panels.filter(({ type }) => type === 'row');

const SCRAPE_SECONDS = 1;
// As Grafana computes it: the larger of four scrape intervals, and of one interval plus the step.
const RATE_INTERVAL = `${4 * SCRAPE_SECONDS}s`;
const RATE = 100;
const LOAD_SECONDS = 300; // stopped when the tests have ended
const WITHIN_MS = 300_000; // so long that a busy machine does not matter
const POLL_EVERY_MS = 100;

/** What a user chooses of the demo's metrics. */
const CHOSEN = {
  histogram: 'http_request_duration_seconds',
  counter: 'demo_requests_total',
  gauge: 'http_requests_in_flight',
  label: 'service',
  status: 'status',
};

/** Metrics that are absent without a cgroup, or without limits. */
const WITHOUT_LIMITS = [
  'process_cgroup_memory_limit_bytes',
  'process_cgroup_memory_usage_bytes',
  'process_cgroup_cpu_quota_cores',
  'process_cgroup_cpu_throttled_seconds_total',
  'process_cgroup_cpu_periods_total',
  'process_cgroup_cpu_throttled_periods_total',
];

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['prometheus']);

/**
 * @param {string} url
 * @returns {Promise<string>} a page with the metrics of workers. The faults make some scrapes fail.
 */
async function completePage(url) {
  for (;;) {
    const page = await (await fetch(url)).text();
    if (hasSamples(page, CHOSEN.gauge)) return page;
    await delay(POLL_EVERY_MS);
  }
}

function read(file) {
  return fs.readFileSync(path.join(ROOT, file), 'utf8');
}

/** Every query of every panel, with the metrics and labels of the demo chosen. */
function targets() {
  return PANELS.flatMap(panel =>
    panel.targets.map(target => ({ panel, target: { ...target, expr: chosen(target.expr) } })),
  );
}

/** @param {string} query */
function chosen(query) {
  return Object.entries(CHOSEN).reduce(
    (text, [name, value]) => text.replaceAll(`\${${name}}`, value).replaceAll(`$${name}`, value),
    query,
  );
}

/**
 * @param {string} query
 * @returns {string[]} the metrics in it, without the suffixes of histograms
 */
function metricsIn(query) {
  const names = Array.from(query.matchAll(/([a-zA-Z_:][\w:]*)\{/g), ([, name]) => name);
  return names.map(name => name.replace(/(?<=_(seconds|bytes))_(bucket|sum|count)$/, ''));
}

describe('the queries of docs/grafana-dashboard.json', { skip }, () => {
  let cluster;
  let single;
  let loadGenerator;
  let prometheus;
  let exposition;

  before(async () => {
    assert.strictEqual(missingPrograms(['prometheus']), undefined);
    cluster = clusterWithFaults();
    await cluster.ready();
    single = await singleProcess();
    prometheus = await PrometheusServer.start(cluster.metricsUrl, single.metricsUrl);
    loadGenerator = new LoadGenerator();
    loadGenerator
      .start({ url: cluster.applicationUrl, rate: RATE, amount: RATE * LOAD_SECONDS })
      .done.catch(() => {}); // it is stopped early
    await prometheus.numberWhen('min(count_over_time(up[1h]))', count => count >= 5, WITHIN_MS);
    exposition = await completePage(cluster.metricsUrl);
  });

  after(async () => {
    await loadGenerator?.stop();
    await prometheus?.stop();
    single?.stop();
    await cluster?.stop();
  });

  /**
   * Replaces the variables as Grafana does: by the chosen values, quoted for a regular expression in a
   * string.
   */
  function interpolated(query, { metricsUrl } = cluster) {
    const { host } = new URL(metricsUrl);
    return query
      .replaceAll('$__rate_interval', RATE_INTERVAL)
      .replaceAll('$instance', host.replaceAll('.', '\\\\.'))
      .replaceAll('$job', 'target');
  }

  /** All values of all series of the last 30 seconds; only the current ones for an instant query. */
  async function valuesOf({ expr, instant }, instance) {
    const query = interpolated(expr, instance);
    assert.ok(!query.includes('$'), `a variable is left: ${query}`);
    const now = Date.now() / 1000;
    const { result } = instant
      ? await prometheus.ask('query', { query })
      : await prometheus.ask('query_range', { query, start: now - 30, end: now, step: SCRAPE_SECONDS });
    return result.flatMap(({ value, values }) => (values ?? [value]).map(([, text]) => text));
  }

  async function hasData(target, instance) {
    const values = await valuesOf(target, instance);
    return values.some(text => text !== 'NaN');
  }

  /** Some events happen only after seconds: a collection, a scrape that fails. */
  async function hasDataSoon(target, instance) {
    const deadline = performance.now() + WITHIN_MS;
    while (!(await hasData(target, instance))) {
      if (performance.now() > deadline) return false;
      await delay(POLL_EVERY_MS);
    }
    return true;
  }

  for (const { panel, target } of targets()) {
    it(`“${panel.title}” ${target.legendFormat} has data`, async t => {
      const missing = metricsIn(target.expr).filter(
        name => WITHOUT_LIMITS.includes(name) && !hasSamples(exposition, name),
      );
      if (missing.length === 0) {
        assert.ok(await hasDataSoon(target), `no data: ${interpolated(target.expr)}`);
      } else {
        t.diagnostic(`the machine has no ${missing.join(', ')}`);
        assert.deepStrictEqual(await valuesOf(target), []);
      }
    });
  }

  for (const { panel, target } of targets().filter(({ panel }) => isInFirstRow(panel))) {
    it(`“${panel.title}” ${target.legendFormat} has data of a single process with default metrics`, async () => {
      assert.ok(await hasDataSoon(target, single), `no data: ${interpolated(target.expr, single)}`);
    });
  }
});

/** The demo's cluster with faults; see the fixture. */
function clusterWithFaults() {
  const { NODE_OPTIONS } = process.env;
  process.env.NODE_OPTIONS = `${NODE_OPTIONS ?? ''} --require=${FAULTS}`;
  try {
    return new ClusterProcess({
      client: 'prom-client-cluster',
      workers: 2,
      samples: 2000,
      defaultMetrics: 'runtime',
    });
  } finally {
    if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = NODE_OPTIONS;
  }
}

/** An application with prom-client's default metrics only, in this process. */
async function singleProcess() {
  const registry = new Registry();
  const stopMetrics = collectDefaultMetrics({ register: registry });
  const server = http.createServer(metricsHandler(registry)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    metricsUrl: `http://127.0.0.1:${server.address().port}/metrics`,
    stop() {
      stopMetrics();
      server.close();
      server.closeAllConnections();
    },
  };
}

function hasSamples(exposition, name) {
  return exposition.split('\n').some(line => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
}

function isInFirstRow(panel) {
  return rowsOfPanels().some(([row, other]) => row === ROWS[0] && other.id === panel.id);
}

/** Each panel with its row. */
function rowsOfPanels() {
  let row;
  return ALL.flatMap(panel => {
    if (panel.type !== 'row') return [[row, panel]];
    row = panel;
    return [];
  });
}
