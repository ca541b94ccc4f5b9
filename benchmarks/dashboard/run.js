'use strict';

// Draws the picture of docs/grafana-dashboard.json: the demo's cluster under load, and what a real Prometheus
// answers to the queries of the dashboard's open rows. `node benchmarks/dashboard/run.js`, 4 minutes; needs
// `prometheus`.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { ClusterProcess } = require('../../example/demo/cluster-process');
const { LoadGenerator } = require('../../example/demo/load-generator');
const { PrometheusServer } = require('../../test/fixtures/prometheus-server');
const { documentNumbers } = require('../pictures/stored.js');

const DASHBOARD = path.join(__dirname, '..', '..', 'docs', 'grafana-dashboard.json');

const WORKERS = 4;
const SAMPLES = 4000;
const PHASES = [
  { rate: 100, seconds: 80 },
  { rate: 300, seconds: 80 },
  { rate: 150, seconds: 80 },
];
const STEP_SECONDS = 8;
const DIGITS = 3;
const MOST_SERIES = 4;

/** What a user would choose of the demo's metrics. Prometheus is told the names of job and instance. */
const VARIABLES = {
  job: 'demo',
  instance: 'shop',
  histogram: 'http_request_duration_seconds',
  counter: 'demo_requests_total',
  gauge: 'http_requests_in_flight',
  label: 'service',
  status: 'status',
  __rate_interval: '15s',
};

async function main() {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'dashboard-'));
  const cluster = new ClusterProcess({
    client: 'prom-client-cluster',
    workers: WORKERS,
    samples: SAMPLES,
    defaultMetrics: 'runtime',
  });
  const generator = new LoadGenerator();
  let prometheus;
  try {
    await cluster.ready();
    const file = path.join(place, 'prometheus.yml');
    fs.writeFileSync(file, configurationOf(new URL(cluster.metricsUrl).host));
    prometheus = await PrometheusServer.startConfigured(file);
    const start = Date.now() / 1000;
    for (const { rate, seconds } of PHASES) {
      await generator.start({ url: cluster.applicationUrl, rate, amount: rate * seconds }).done;
    }
    const rows = await rowsOf(prometheus, start, Date.now() / 1000);
    const files = await documentNumbers('dashboard', { stepSeconds: STEP_SECONDS, rows });
    for (const written of files) console.log(`Written to ${path.relative(process.cwd(), written)}`);
  } finally {
    await generator.stop();
    await prometheus?.stop();
    await cluster.stop();
    fs.rmSync(place, { recursive: true });
  }
}

function configurationOf(host) {
  return `
global: { scrape_interval: 3s, scrape_timeout: 3s }
scrape_configs:
  - job_name: demo
    static_configs: [{ targets: ['${host}'], labels: { instance: shop } }]
`;
}

/** The rows of the dashboard, and of each open one its panels of lines that are not all at zero. */
async function rowsOf(prometheus, start, end) {
  const rows = [];
  for (const { type, title, collapsed, fieldConfig, targets } of JSON.parse(fs.readFileSync(DASHBOARD))
    .panels) {
    if (type === 'row') rows.push({ title, collapsed, panels: [] });
    if (type !== 'timeseries') continue;
    const { unit, custom } = fieldConfig.defaults;
    const series = [];
    for (const { expr, legendFormat } of targets) {
      const { result } = await prometheus.ask('query_range', {
        query: interpolated(expr),
        start: String(start),
        end: String(end),
        step: String(STEP_SECONDS),
      });
      for (const { metric, values } of result) {
        series.push({ name: legendOf(legendFormat, metric), values: atEachStep(values, start) });
      }
    }
    if (series.every(({ values }) => values.every(value => !value))) continue;
    const isStacked = custom.stacking.mode === 'normal';
    rows.at(-1).panels.push({ title: interpolated(title), unit, isStacked, series: largestOf(series) });
  }
  return rows;
}

function interpolated(text) {
  return Object.entries(VARIABLES).reduce(
    (result, [name, value]) => result.replaceAll(`\${${name}}`, value).replaceAll(`$${name}`, value),
    text,
  );
}

/** As Grafana does it, without the name of the only instance. */
function legendOf(format, labels) {
  return interpolated(format)
    .replace(/\{\{(\w+)\}\}/g, (_, label) => (label === 'instance' ? '' : (labels[label] ?? '')))
    .trim();
}

/** @returns {(number | null)[]} the value of each step from the start on */
function atEachStep(values, start) {
  const steps = [];
  for (const [at, value] of values) steps[Math.round((at - start) / STEP_SECONDS)] = rounded(Number(value));
  return Array.from(steps, value => value ?? null);
}

/** At most as many series as there are colours. */
function largestOf(series) {
  const sumOf = ({ values }) => values.reduce((sum, value) => sum + value, 0);
  return series.sort((a, b) => sumOf(b) - sumOf(a)).slice(0, MOST_SERIES);
}

/** @param {number} value */
function rounded(value) {
  return Number.isFinite(value) ? Number(value.toPrecision(DIGITS)) : null;
}

main();
