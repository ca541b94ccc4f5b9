'use strict';

// Runtime metrics of heap, memory, process and cgroup, compared with their sources.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');
const v8 = require('node:v8');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const cgroup = require('../../lib/runtime/families/cgroup');
const { Registry } = require('../../lib/registry/registry');
const { replace } = require('./fixtures/default-metrics-runtime');

let register;
let stop;

beforeEach(() => {
  register = new Registry();
  stop = () => {};
});
afterEach(() => stop());

const collect = (runtime, config) => (stop = collectDefaultMetrics({ ...config, register, runtime }));

/** Values by the value of their only label, or the value. */
async function valuesOf(name) {
  const { values } = await register.getSingleMetric(name).get();
  const [first] = values;
  if (first === undefined) return undefined;
  if (Object.keys(first.labels).length === 0) return first.value;
  return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels)[0], value]));
}

function assertNear(value, expected, share, name) {
  assert.ok(Math.abs(value - expected) <= share * expected, `${name}: ${value}, not ${expected}`);
}

it("nodejs_heap_limit_bytes and nodejs_heap_space_*_bytes have V8's limit, and its figures of each space", async () => {
  collect(['heap']);
  assert.strictEqual(await valuesOf('nodejs_heap_limit_bytes'), v8.getHeapStatistics().heap_size_limit);
  const spaces = v8.getHeapSpaceStatistics();
  for (const [what, field] of [
    ['used', 'space_used_size'],
    ['committed', 'space_size'],
    ['physical', 'physical_space_size'],
  ]) {
    const values = await valuesOf(`nodejs_heap_space_${what}_bytes`);
    assert.deepStrictEqual(
      Object.keys(values),
      spaces.map(({ space_name }) => space_name.replace(/_space$/, '')),
    );
    for (const space of ['old', 'large_object']) {
      const expected = spaces.find(({ space_name }) => space_name === `${space}_space`)[field];
      assertNear(values[space], expected, 0.2, `${what} ${space}`);
    }
  }
});

describe('nodejs_array_buffers_bytes and nodejs_malloced_memory_bytes', () => {
  it('nodejs_array_buffers_bytes and nodejs_malloced_memory_bytes have the memory of buffers', async () => {
    collect(['memory']);
    const before = await valuesOf('nodejs_array_buffers_bytes');
    const buffer = Buffer.alloc(50e6);
    const grown = (await valuesOf('nodejs_array_buffers_bytes')) - before;
    assert.ok(grown >= 49e6 && grown <= 51e6, `${grown} for ${buffer.length}`);
  });

  it("nodejs_array_buffers_bytes and nodejs_malloced_memory_bytes have V8's own memory", async t => {
    const heap = { ...v8.getHeapStatistics(), malloced_memory: 111, peak_malloced_memory: 222 };
    replace(t, v8, 'getHeapStatistics', () => heap);
    collect(['memory']);
    assert.strictEqual(await valuesOf('nodejs_malloced_memory_bytes'), 111);
    assert.strictEqual(await valuesOf('nodejs_malloced_memory_peak_bytes'), 222);
  });
});

describe('process_uptime_seconds, page faults and context switches', () => {
  it('process_uptime_seconds, page faults and context switches are those since the process started', async () => {
    collect(['process']);
    const reference = process.resourceUsage();
    const uptime = process.uptime();
    const value = await valuesOf('process_uptime_seconds');
    assert.ok(value >= uptime && value <= process.uptime(), `${value}`);
    const faults = await valuesOf('process_page_faults_total');
    const switches = await valuesOf('process_context_switches_total');
    const after = process.resourceUsage();
    for (const [value, field] of [
      [faults.minor, 'minorPageFault'],
      [faults.major, 'majorPageFault'],
      [switches.voluntary, 'voluntaryContextSwitches'],
      [switches.involuntary, 'involuntaryContextSwitches'],
    ]) {
      assert.ok(value >= reference[field] && value <= after[field], `${field}: ${value}`);
    }
  });

  it('process_uptime_seconds, page faults and context switches count what happens later', async t => {
    const usage = {
      minorPageFault: 10,
      majorPageFault: 1,
      voluntaryContextSwitches: 5,
      involuntaryContextSwitches: 2,
    };
    replace(t, process, 'resourceUsage', () => usage);
    collect(['process']);
    await register.metrics();
    usage.minorPageFault = 14;
    usage.involuntaryContextSwitches = 9;
    assert.deepStrictEqual(await valuesOf('process_page_faults_total'), { minor: 14, major: 1 });
    assert.deepStrictEqual(await valuesOf('process_context_switches_total'), {
      voluntary: 5,
      involuntary: 9,
    });
  });
});

describe('process_cgroup_*', () => {
  let place;

  beforeEach(() => (place = fs.mkdtempSync(path.join(os.tmpdir(), 'cgroup-test-'))));
  afterEach(() => fs.rmSync(place, { recursive: true }));

  /** Writes files below a root, and the file that names the cgroups. */
  function tree(membership, files) {
    for (const [name, text] of Object.entries({ membership, ...files })) {
      fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
      fs.writeFileSync(path.join(place, name), text);
    }
    return { root: place, membership: path.join(place, 'membership') };
  }

  /** The values by the end of their names; undefined if there are no metrics. */
  async function shown(places) {
    const group = cgroup(register, {}, places);
    if (group === undefined) return undefined;
    const found = {};
    for (const name of NAMES) {
      const metric = register.getSingleMetric(`process_cgroup_${name}`);
      if (metric !== undefined) found[name] = (await metric.get()).values[0]?.value;
    }
    return found;
  }

  const V2 = {
    'cgroup.controllers': 'cpu memory\n',
    'memory.max': '536870912\n',
    'memory.current': '123456\n',
    'cpu.max': '150000 100000\n',
    'cpu.stat': 'usage_usec 5\nnr_periods 70\nnr_throttled 7\nthrottled_usec 2500000\n',
  };
  const below = (directory, files) =>
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`${directory}/${name}`, text]));
  const EXPECTED = {
    memory_limit_bytes: 536870912,
    memory_usage_bytes: 123456,
    cpu_quota_cores: 1.5,
    cpu_throttled_seconds_total: 2.5,
    cpu_periods_total: 70,
    cpu_throttled_periods_total: 7,
  };
  const NAMES = Object.keys(EXPECTED);

  const NO_LIMITS = { ...EXPECTED, memory_limit_bytes: undefined, cpu_quota_cores: undefined };
  const controllers = { 'cgroup.controllers': 'cpu memory\n' };
  const unlimited = { ...V2, 'memory.max': 'max\n', 'cpu.max': 'max 100000\n' };
  const wide = { ...V2, 'memory.max': '999999999999\n', 'cpu.max': '800000 100000\n' };
  const own = { ...unlimited, 'memory.current': '1\n' };
  const nested = {
    ...controllers,
    ...below('pod', wide),
    ...below('pod/middle', V2),
    ...below('pod/middle/own', own),
  };
  const V1 = {
    'memory.limit_in_bytes': '536870912\n',
    'memory.usage_in_bytes': '123456\n',
    'cpu.cfs_quota_us': '150000\n',
    'cpu.cfs_period_us': '100000\n',
    'cpu.stat': 'nr_periods 70\nnr_throttled 7\nthrottled_time 2500000000\n',
  };
  const v1 = (directory, files = V1) => {
    const pick = (controller, mount) =>
      below(
        `${mount}${directory}`,
        Object.fromEntries(Object.entries(files).filter(([name]) => name.startsWith(controller))),
      );
    return { ...pick('memory.', 'memory'), ...pick('cpu.', 'cpu,cpuacct') };
  };
  const unlimitedV1 = { ...V1, 'memory.limit_in_bytes': '9223372036854771712\n', 'cpu.cfs_quota_us': '-1\n' };
  const docker = '5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n';

  const onHost = { ...controllers, ...below('a.slice/b.service', V2) };

  for (const [what, membership, files, expected] of [
    ['version 2 in a container', '0::/\n', V2, EXPECTED],
    ['version 2 on the host', '0::/a.slice/b.service\n', onHost, EXPECTED],
    ['version 2 with an ancestor of tighter limits', '0::/pod/middle/own\n', nested, EXPECTED],
    ['version 2 without limits', '0::/\n', unlimited, NO_LIMITS],
    [
      'version 2 at the root of a host',
      '0::/\n',
      { ...controllers, 'cpu.stat': 'usage_usec 5\n' },
      undefined,
    ],
    ['version 1 on the host', `${docker}1:name=systemd:/x\n0::/x\n`, v1('/docker/abc'), EXPECTED],
    ["version 1 in a container, which has its own files and the host's path", docker, v1(''), EXPECTED],
    ['version 1 without limits', '5:memory:/\n4:cpu,cpuacct:/\n', v1('', unlimitedV1), NO_LIMITS],
    ['a process outside the mounted cgroup', '0::/../../other\n', V2, EXPECTED],
    ['a process in no cgroup, with nothing mounted', '', {}, undefined],
    ['an odd list of cgroups, with nothing mounted', 'nonsense\n', {}, undefined],
    ['a process in a cgroup, with nothing mounted', '0::/\n', {}, undefined],
  ]) {
    it(`process_cgroup_* are right for ${what}`, async () => {
      assert.deepStrictEqual(await shown(tree(membership, files)), expected);
      if (expected === undefined) assert.deepStrictEqual(register.getMetricsAsArray(), []);
    });
  }

  it('process_cgroup_* without limits have no samples of them, before and after resetMetrics()', async () => {
    await shown(tree('0::/\n', unlimited));
    const limits = /^process_cgroup_(memory_limit_bytes|cpu_quota_cores)/m;
    assert.doesNotMatch(await register.metrics(), limits);
    register.resetMetrics();
    assert.doesNotMatch(await register.metrics(), limits);
  });

  it('process_cgroup_* have only memory or only CPU if only one controller is enabled', async () => {
    const { 'memory.current': usage, 'memory.max': limit, ...cpu } = V2;
    assert.deepStrictEqual(Object.keys(await shown(tree('0::/\n', cpu))), NAMES.slice(2));
    register.clear();
    fs.rmSync(place, { recursive: true });
    const memory = { 'cgroup.controllers': 'memory\n', 'memory.current': usage, 'memory.max': limit };
    assert.deepStrictEqual(Object.keys(await shown(tree('0::/\n', memory))), NAMES.slice(0, 2));
  });

  it('process_cgroup_* are absent without /proc/self/cgroup', async () => {
    const places = { root: path.join(place, 'missing'), membership: path.join(place, 'missing') };
    assert.strictEqual(await shown(places), undefined);
  });

  it('process_cgroup_* are read at each scrape', async () => {
    const places = tree('0::/\n', V2);
    assert.deepStrictEqual(await shown(places), EXPECTED);
    tree('0::/\n', {
      ...V2,
      'memory.max': 'max\n',
      'cpu.max': '200000 100000\n',
      'cpu.stat': 'nr_periods 80\nnr_throttled 9\nthrottled_usec 3500000\n',
    });
    const text = await register.metrics();
    assert.match(text, /^process_cgroup_cpu_quota_cores 2$/m);
    assert.match(text, /^process_cgroup_cpu_periods_total 80$/m);
    assert.match(text, /^process_cgroup_cpu_throttled_periods_total 9$/m);
    assert.match(text, /^process_cgroup_cpu_throttled_seconds_total 3.5$/m);
    assert.doesNotMatch(text, /^process_cgroup_memory_limit_bytes/m);
    assert.match(text, /^process_cgroup_memory_usage_bytes 123456$/m);
    // Counters keep their last values when the files are gone.
    fs.rmSync(place, { recursive: true });
    assert.match(await register.metrics(), /^process_cgroup_cpu_periods_total 80$/m);
    fs.mkdirSync(place);
  });

  it('process_cgroup_* have the configured labels and prefix', async () => {
    cgroup(register, { labels: { worker: 3 }, prefix: 'app_' }, tree('0::/\n', V2));
    assert.match(await register.metrics(), /^app_process_cgroup_cpu_quota_cores\{worker="3"\} 1.5$/m);
  });
});
