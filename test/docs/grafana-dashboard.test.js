'use strict';

// docs/grafana-dashboard.json: Prometheus accepts each query, whose metrics and labels exist.

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { it } = require('node:test');
const { Registry, collectDefaultMetrics } = require('../..');
const { missingPrograms } = require('../fixtures/prometheus-server');

const DOCS = path.join(__dirname, '../../docs');
const { panels } = JSON.parse(fs.readFileSync(path.join(DOCS, 'grafana-dashboard.json'), 'utf8'));
// A collapsed row has its panels in it.
const TARGETS = panels.flatMap(panel => [panel, ...(panel.panels ?? [])]).flatMap(each => each.targets ?? []);

/** What a user chooses, of an application's metrics. */
const CHOSEN = { histogram: 'took_seconds', counter: 'jobs_total', gauge: 'open', label: 'of', status: 'of' };
const OF_PROMETHEUS = ['job', 'instance', 'le'];
const GRAFANA = { __rate_interval: '1m', job: 'target', instance: 'box' };

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['promtool']);

/** @param {string} expression with Grafana's variables */
const interpolated = expression =>
  Object.entries({ ...CHOSEN, ...GRAFANA }).reduce(
    (text, [name, value]) => text.replaceAll(`\${${name}}`, value).replaceAll(`$${name}`, value),
    expression,
  );

/** @returns {Map<string, string[]>} labels by metric: of the code, the documents' tables, Prometheus */
function knownMetrics() {
  const register = new Registry();
  collectDefaultMetrics({ register })();
  const known = new Map(register.getMetricsAsArray().map(({ name, labelNames }) => [name, labelNames]));
  for (const [document, column] of [
    ['self-metrics.md', 1],
    ['runtime-metrics.md', 2],
  ]) {
    const rows = fs
      .readFileSync(path.join(DOCS, document), 'utf8')
      .matchAll(/^\| `(\w+)` +\| (?:counter|gauge|histogram).*$/gm);
    for (const [row, name] of rows) known.set(name, row.split('|')[column + 2].match(/\w+/g) ?? []);
  }
  for (const name of ['up', 'scrape_duration_seconds', 'scrape_samples_scraped']) known.set(name, []);
  for (const name of ['took_seconds', 'jobs_total', 'open']) known.set(name, ['of']);
  return known;
}

it('each query of docs/grafana-dashboard.json names metrics and labels that exist', () => {
  const known = knownMetrics();
  assert.ok(TARGETS.length > 50);
  for (const { expr } of TARGETS) {
    const query = interpolated(expr);
    assert.ok(!query.includes('$'), query);
    const metrics = Array.from(query.matchAll(/([a-z][\w:]*)\{/g), ([, name]) =>
      known.get(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
    );
    assert.ok(metrics.length > 0, query);
    for (const metric of metrics) assert.ok(known.has(metric), `${metric} in ${query}`);
    const labels = metrics.flatMap(metric => known.get(metric)).concat(OF_PROMETHEUS);
    const named = [...query.matchAll(/[{,](\w+)(?:=|!=)/g), ...query.matchAll(/\bby \(([\w, ]+)\)/g)];
    for (const label of named.flatMap(([, names]) => names.split(', ')))
      assert.ok(labels.includes(label), `${label} in ${query}`);
  }
});

it('Prometheus accepts each query of docs/grafana-dashboard.json', { skip }, t => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'dashboard-'));
  t.after(() => fs.rmSync(directory, { recursive: true }));
  const rules = TARGETS.map(({ expr }, i) => ({ record: `query:${i}`, expr: interpolated(expr) }));
  const file = path.join(directory, 'rules.json');
  fs.writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  execFileSync('promtool', ['check', 'rules', file]);
});
