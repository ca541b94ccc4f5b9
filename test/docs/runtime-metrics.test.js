'use strict';

// docs/runtime-metrics.md has the metrics of the code, and Prometheus accepts its queries and alerts.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const cgroup = require('../../lib/runtime/families/cgroup');
const { Registry } = require('../../lib/registry/registry');
const { assertAlertsFire } = require('../fixtures/alert-tests');
const { missingPrograms } = require('../fixtures/prometheus-server');

const DOCUMENT = fs.readFileSync(path.join(__dirname, '../../docs/runtime-metrics.md'), 'utf8');
const METRICS = DOCUMENT.slice(DOCUMENT.indexOf('## The metrics'), DOCUMENT.indexOf('## Charts'));
const CHARTS = DOCUMENT.slice(DOCUMENT.indexOf('## Charts'), DOCUMENT.indexOf('## Alerts'));
const [, RULES] = /^```yaml\n([^]*?)^```$/m.exec(DOCUMENT);

const required = process.env.REQUIRE_ALL === '1';
const withPromtool = { skip: !required && missingPrograms(['promtool']) };

/** @type {string} */
let place;

before(() => (place = fs.mkdtempSync(path.join(os.tmpdir(), 'runtime-docs-test-'))));
after(() => fs.rmSync(place, { recursive: true }));

/** The metrics of a family, even if this machine does not have them. */
function registered(family) {
  const register = new Registry();
  if (family === 'cgroup') {
    for (const [name, text] of Object.entries({
      membership: '0::/\n',
      'cgroup.controllers': 'cpu memory\n',
      'memory.current': '1\n',
      'cpu.stat': 'nr_periods 1\nnr_throttled 1\nthrottled_usec 1\n',
    })) {
      fs.writeFileSync(path.join(place, name), text);
    }
    cgroup(register, {}, { root: place, membership: path.join(place, 'membership') });
    return register.getMetricsAsArray();
  }
  collectDefaultMetrics({ register, runtime: [family] })();
  return register.getMetricsAsArray().slice(31);
}

/** The default metrics that the document has, too. */
function standing() {
  const register = new Registry();
  collectDefaultMetrics({ register })();
  return ['nodejs_external_memory_bytes', 'nodejs_active_resources'].map(name =>
    register.getSingleMetric(name),
  );
}

const all = () => [...collectDefaultMetrics.runtimeMetricsList.flatMap(registered), ...standing()];

/** The rows of the tables in a part of the document whose first cell is a name in backticks. */
function rowsOf(text) {
  return Array.from(text.matchAll(/^\| `(\w+)` +\|(.*)\|$/gm), ([, name, rest]) => [
    name,
    ...rest.split(' | ').map(cell => cell.trim()),
  ]);
}

/**
 * Type, labels and aggregator of each metric in the section of a heading. The unit must end the metric's
 * name.
 */
function documentedUnder(heading) {
  const start = METRICS.indexOf(`### ${heading}\n`);
  const end = METRICS.indexOf('\n### ', start + 1);
  return rowsOf(METRICS.slice(start, end === -1 ? undefined : end))
    .filter(([name]) => /^(nodejs|process)_/.test(name))
    .map(([name, type, unit, labels, aggregator, what]) => {
      assert.ok(what.length > 10, name);
      const words = name.replace(/_total$/, '').replaceAll('_', ' ');
      assert.ok(unit !== '' && words.endsWith(` ${unit}`), `${name} in ${unit}`);
      return { name, type, labels: labels.match(/\w+/g) ?? [], aggregator };
    });
}

const asDocumented = metrics =>
  metrics.map(({ name, type, labelNames, aggregator }) => ({ name, type, labels: labelNames, aggregator }));

const charts = () => rowsOf(CHARTS).map(([name, query]) => ({ name, query: query.slice(1, -1) }));
describe('the tables of docs/runtime-metrics.md', () => {
  it('docs/runtime-metrics.md has a heading for each family, in order', () => {
    const headings = Array.from(METRICS.matchAll(/^### (\w+)$/gm), ([, heading]) => heading);
    assert.deepStrictEqual(headings, collectDefaultMetrics.runtimeMetricsList);
  });

  for (const family of collectDefaultMetrics.runtimeMetricsList) {
    it(`docs/runtime-metrics.md has the metrics of ${family}, with type, unit, labels and aggregator`, () => {
      assert.deepStrictEqual(documentedUnder(family), asDocumented(registered(family)));
    });
  }

  it('docs/runtime-metrics.md has the two related default metrics', () => {
    assert.deepStrictEqual(documentedUnder('Related default metrics'), asDocumented(standing()));
  });
});

describe('charts and alerts of docs/runtime-metrics.md', () => {
  it('docs/runtime-metrics.md has a chart for each metric, and names no metric that does not exist', () => {
    const names = all().map(({ name }) => name);
    const found = charts().map(({ name }) => name);
    assert.deepStrictEqual(found, names);
    const register = new Registry();
    collectDefaultMetrics({ register })();
    const known = new Set([...names, ...register.getMetricsAsArray().map(({ name }) => name)]);
    const named = DOCUMENT.match(/\b(?:nodejs|process)_[a-z_]+[a-z]\b/g);
    const shown = named.filter(name => !known.has(name.replace(/_bucket$/, '')));
    assert.deepStrictEqual(shown, []);
  });

  it('alerts of docs/runtime-metrics.md fire on bad values, and not on good ones', withPromtool, () =>
    assertAlertsFire(
      place,
      RULES,
      Object.entries(BAD).map(([alert, series]) => {
        const [quiet, firing] = TIMES[alert] ?? ['119m', '230m'];
        return { alert, series, quiet, firing };
      }),
    ),
  );
});

const LOOP = [
  ['nodejs_eventloop_active_seconds_total', '0+30x240'],
  ['nodejs_eventloop_idle_seconds_total', '0+30x240'],
];

/** A sample per minute: two hours of good values, then two hours of bad ones; or as in TIMES. */
const BAD = {
  NodeGcTakesTime: [...LOOP, ['nodejs_gc_pause_seconds_total{kind="minor"}', '0+1x120 120+15x120']],
  NodeGcFreesLittle: [
    ['nodejs_gc_runs_total{kind="major"}', '0+1x120 120+30x120'],
    ['nodejs_gc_reclaimed_bytes_total{kind="major"}', '0+50000000x120 6000000000+1000000x120'],
  ],
  NodeHeapNearlyFull: [
    ['nodejs_heap_space_used_bytes{space="old"}', '100x120 800x120'],
    ['nodejs_heap_space_used_bytes{space="new"}', '100x240'],
    ['nodejs_heap_limit_bytes', '1000x240'],
  ],
  NodeHeapMostlyEmpty: [
    ['nodejs_heap_space_used_bytes{space="old"}', '1500000000x120 200000000x120'],
    ['nodejs_heap_space_committed_bytes{space="old"}', '2000000000x240'],
  ],
  NodeArrayBuffersGrow: [['nodejs_array_buffers_bytes', '200000000x360 900000000x120']],
  NodeMallocedMemoryLarge: [['nodejs_malloced_memory_bytes', '1000000x120 600000000x120']],
  NodeEventLoopBusy: [
    ['nodejs_eventloop_active_seconds_total', '0+30x120 3600+59x120'],
    ['nodejs_eventloop_idle_seconds_total', '0+30x120 3600+1x120'],
  ],
  NodeEventLoopDelayed: ['0.1', '0.25', '+Inf'].map(le => [
    `nodejs_eventloop_delay_seconds_bucket{le="${le}"}`,
    le === '0.1' ? '0+6000x120 720000+5000x120' : '0+6000x240',
  ]),
  NodeActiveResourcesGrow: [['nodejs_active_resources{type="TCPSocketWrap"}', '2000x1520 5000x120']],
  NodeRestartsOften: [['process_uptime_seconds', `0+60x120 ${'1 900 '.repeat(60)}`]],
  NodeReadsPagesFromDisk: [['process_page_faults_total{kind="major"}', '0+10x120 1200+12000x120']],
  NodeLosesItsCpu: [
    ...LOOP,
    ['process_context_switches_total{kind="involuntary"}', '0+600x120 72000+60000x120'],
  ],
  ContainerMemoryNearLimit: [
    ['process_cgroup_memory_usage_bytes', '500x120 950x120'],
    ['process_cgroup_memory_limit_bytes', '1000x240'],
  ],
  ContainerCpuThrottled: [
    ['process_cgroup_cpu_throttled_periods_total', '0+6x120 720+300x120'],
    ['process_cgroup_cpu_periods_total', '0+600x240'],
  ],
  ContainerCpuWaits: [
    ['process_cgroup_cpu_throttled_seconds_total', '0+1x120 120+60x120'],
    ['process_cgroup_cpu_quota_cores', '2x240'],
  ],
};

/** When it must not fire and when it has to, of alerts that compare with a time longer ago. */
const TIMES = { NodeArrayBuffersGrow: ['359m', '470m'], NodeActiveResourcesGrow: ['1500m', '1620m'] };
