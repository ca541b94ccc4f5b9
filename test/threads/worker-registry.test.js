'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const diagnosticsChannel = require('node:diagnostics_channel');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const { pathToFileURL } = require('node:url');
const { promisify } = require('node:util');
const client = require('../../index');
const { until } = require('../fixtures/cluster-harness');
const { familiesOf } = require('../fixtures/protobuf-page');
const { collectGarbage } = require('../runtime/fixtures/default-metrics-runtime');
const { record } = require('./fixtures/aggregated');
const { TestThread, joinedThread } = require('./fixtures/start-thread');

const { AggregatorRegistry, Counter, Registry, WorkerRegistry, metricsResponse, register } = client;

const ROOT = path.join(__dirname, '../..');

/** @type {Record<string, (values: number[]) => number | undefined>} */
const RESULTS = {
  sum: values => values.reduce((sum, value) => sum + value, 0),
  first: ([value]) => value,
  min: values => Math.min(...values),
  max: values => Math.max(...values),
  average: values => RESULTS.sum(values) / values.length,
  omit: () => undefined,
  product: values => values.reduce((product, value) => product * value, 1),
};

/**
 * @param {string} page
 * @param {string} sample
 */
function valueOf(page, sample) {
  const line = page.split('\n').find(each => each.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
}

describe('WorkerRegistry', () => {
  /** @type {WorkerRegistry} */
  let registry;
  /** @type {TestThread[]} */
  let threads;

  /** @param {...(string | [string, object])} actions */
  async function start(...actions) {
    const thread = await joinedThread(...actions);
    threads.push(thread);
    return thread;
  }

  /**
   * The first page with a sample that needs the event loop of a thread: a busy one is not waited for.
   *
   * @param {string} sample
   * @param {number} value
   */
  async function pageWith(sample, value) {
    return pageWhere(page => valueOf(page, sample) === value);
  }

  /** @param {(page: string) => unknown} hasAll */
  async function pageWhere(hasAll) {
    for (;;) {
      const page = await registry.workerMetrics();
      if (hasAll(page)) return page;
    }
  }

  beforeEach(() => {
    threads = [];
    registry = new WorkerRegistry({ timeout: 60_000 });
  });

  afterEach(async () => {
    await Promise.all(threads.map(thread => thread.terminate()));
    await registry.shutdown();
    register.clear();
  });

  it('WorkerRegistry ends no scrape that has begun before shutdown()', async () => {
    new Counter({ name: 'jobs_total', help: 'h' }).inc(2);
    const page = registry.workerMetrics();
    const [text] = await Promise.all([page, registry.shutdown(60_000)]);
    assert.equal(valueOf(text, 'jobs_total'), 2);
    assert.equal(await registry.workerMetrics(), '');
  });

  it('shutdown() of a class that is derived from WorkerRegistry may call close()', async () => {
    class Derived extends WorkerRegistry {
      calls = 0;

      async shutdown() {
        assert.equal(++this.calls, 1);
        await this.close();
      }
    }
    await registry.close();
    const derived = new Derived();
    await derived.shutdown();
    assert.equal(await derived.workerMetrics(), '');
  });

  it('WorkerRegistry adds up all threads and the main thread', async () => {
    new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'] }).inc({ kind: 'a' }, 1);
    await start(
      ['inc', { kind: 'a', value: 10 }],
      ['set', { value: 3 }],
      ['observe', { kind: 'x', value: 3 }],
    );
    await start(['inc', { kind: 'a', value: 100 }], ['inc', { kind: 'b', value: 5 }], ['set', { value: 4 }]);
    const page = await registry.workerMetrics();
    assert.equal(valueOf(page, 'jobs_total{kind="a"}'), 111);
    assert.equal(valueOf(page, 'jobs_total{kind="b"}'), 5);
    assert.equal(valueOf(page, 'seconds_bucket{le="4",kind="x"}'), 1);
    assert.equal(valueOf(page, 'seconds_sum{kind="x"}'), 3);
    assert.equal(page.match(/^queue_size\{/gm)?.length, 2);
    assert.equal(registry.workerCount(), 2);
    assert.equal(WorkerRegistry.workerCount(), 2);
  });

  it('WorkerRegistry leaves out a label that is undefined: one series in each thread, and when one has ended', async () => {
    new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'] }).inc({ kind: undefined }, 1);
    const undefinedKind = /** @type {[string, object]} */ (['inc', { kind: undefined, value: 10 }]);
    const ended = await start(undefinedKind, ['observe', { value: 3 }]);
    const other = await start(undefinedKind);
    const shown = async () => (await registry.workerMetrics()).match(/^(jobs|seconds_(sum|count)).*/gm);
    assert.deepEqual(await shown(), ['jobs_total 21', 'seconds_sum 3', 'seconds_count 1']);
    await ended.terminate();
    await other.do('inc', { value: 10 });
    assert.deepEqual(await shown(), ['jobs_total 31', 'seconds_sum 3', 'seconds_count 1']);
  });

  it('WorkerRegistry starts the aggregator when a thread joins: the first scrape may have little time', async t => {
    let started = 0;
    const count = () => void started++;
    process.on('worker', count);
    t.after(() => process.off('worker', count));
    await start();
    await until(() => registry.workerCount() === 1 && started === 2, 'the thread and the aggregator run');
  });

  it('WorkerRegistry counts what was recorded before the thread joined, in children too', async () => {
    const thread = new TestThread();
    threads.push(thread);
    await thread.doAll('create', ['many', { count: 5000 }], ['plain', { value: 2 }], 'join');
    await thread.doAll(['many', { count: 5000 }], ['plain', { value: 3 }]);
    const page = await registry.workerMetrics();
    assert.equal(page.match(/^jobs_total\{kind="kind\d+"\} 2$/gm)?.length, 5000);
    assert.equal(valueOf(page, 'plain_total'), 5);
  });

  it('WorkerRegistry is exact for a thread that never returns to its event loop, and creates label sets meanwhile', async () => {
    const thread = await start();
    const shared = new SharedArrayBuffer(16);
    assert.equal(await thread.do('spin', { shared }), 'spins');
    const counted = new Float64Array(shared, 8, 1);
    let last = 0;
    for (let scrape = 0; scrape < 6; scrape++) {
      const before = counted[0];
      const page = await registry.workerMetrics();
      const after = counted[0];
      const shown = valueOf(page, 'jobs_total{kind="spin"}') ?? 0;
      assert.ok(
        shown >= Math.max(before, last),
        `${shown} shown, ${before} counted before, ${last} shown before`,
      );
      assert.ok(shown <= after + 1, `${shown} shown, ${after} counted`);
      const others = [...page.matchAll(/^jobs_total\{kind="spin\d+"\} (\d+)$/gm)];
      const sum = others.reduce((total, [, value]) => total + Number(value), 0);
      assert.ok(Math.abs(sum * 1000 - shown) <= 2000 + (after - before), `${sum} of the others, ${shown}`);
      last = shown;
    }
    Atomics.store(new Int32Array(shared), 0, 1);
  });

  it('WorkerRegistry shows a thread that sleeps in Atomics.wait, and waits for its hooks no second time', async () => {
    const thread = await start('hook', ['inc', { kind: 'a', value: 2 }]);
    await pageWith('hooked', 7);
    assert.equal(await thread.do('sleep'), 'sleeps');
    const page = await registry.workerMetrics();
    assert.equal(valueOf(page, 'sizes{quantile="0.5"}'), 2);
    assert.equal(valueOf(page, 'jobs_total{kind="a"}'), 2);
    assert.equal(valueOf(page, 'hooked'), 7);
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 2);
  });

  for (const [how, end] of /** @type {const} */ ([
    ['is terminated', (/** @type {TestThread} */ thread) => thread.terminate()],
    ['exits', (/** @type {TestThread} */ thread) => thread.end('exit')],
    ['throws', (/** @type {TestThread} */ thread) => thread.end('throw')],
  ])) {
    it(`WorkerRegistry keeps the counts of a thread that ${how}, and not its gauges`, async () => {
      const actions = /** @type {[string, object][]} */ ([
        ['inc', { kind: 'a', value: 0.1 }],
        ['observe', { kind: 'x', value: 3 }],
        ['summarize', { value: 7 }],
        ['set', { value: 3 }],
      ]);
      const ended = await start(...actions);
      const other = await start(...actions);
      const before = await registry.workerMetrics();
      assert.equal(valueOf(before, 'sizes{quantile="0.5"}'), 7);
      await end(ended);
      const after = await registry.workerMetrics();
      const shown = (/** @type {string} */ page) =>
        page.split('\n').filter(line => /^(jobs|seconds|sizes)/.test(line));
      assert.deepEqual(shown(after), shown(before));
      assert.equal(after.match(/^queue_size\{/gm)?.length, 1);
      assert.equal(registry.workerCount(), 1);
      await other.do('inc', { kind: 'a', value: 1 });
      assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 0.1 + 1.1);
    });
  }

  it('WorkerRegistry has digests, custom metric objects and the names of failed hooks', async t => {
    const warnings = /** @type {string[]} */ ([]);
    const onWarning = (/** @type {Error} */ { message }) => warnings.push(message);
    process.on('warning', onWarning);
    t.after(() => process.off('warning', onWarning));
    const thread = await start(
      'custom',
      'failingHook',
      ['summarize', { value: 3 }],
      ['summarize', { value: 9 }],
    );
    const page = await registry.workerMetrics();
    assert.equal(valueOf(page, 'sizes{quantile="0.5"}'), 6);
    assert.equal(valueOf(page, 'sizes_count'), 2);
    await pageWith('custom_size', 7);
    const heard = [];
    const onError = (/** @type {Error} */ { message }) => heard.push(message);
    const request = new Request('http://localhost/metrics');
    while (heard.length === 0) await client.metricsResponse(registry, request, { onError });
    assert.deepEqual(heard, ['The page shows old values because collect hooks have failed: failing']);
    const warned = warnings.filter(text => text.includes('the metric failing '));
    const shown = warned.map(text => /failed: (.*?)\./.exec(text)?.[1]);
    assert.deepEqual(shown, ['in a thread, on purpose']);
    await thread.terminate();
    assert.equal(valueOf(await registry.workerMetrics(), 'sizes{quantile="0.5"}'), 6);
  });

  it('WorkerRegistry: a patient scrape waits for the hook that an impatient one has given up, and shows the run after', async () => {
    const thread = await start();
    // So that an impatient scrape has something to show.
    await registry.workerMetrics();
    await thread.do('heldHook');
    const impatient = registry.workerMetrics({ timeout: 20 });
    await thread.do('hookBegun');
    await impatient;
    const patient = registry.workerMetrics();
    await thread.do('endHook');
    await thread.do('hookBegun');
    await thread.do('endHook');
    assert.equal(valueOf(await patient, 'held'), 2);
  });

  it('WorkerRegistry counts a hook that does not end, at each scrape, and shows the last values', async () => {
    const count = 'prom_client_cluster_failures_total{stage="collect",metric="held"}';
    const thread = await start(['inc', { kind: 'a', value: 2 }]);
    // So that an impatient scrape has something to show.
    await registry.workerMetrics();
    await thread.do('heldHook');
    const impatient = registry.workerMetrics({ timeout: 20 });
    await thread.do('hookBegun');
    await impatient;
    for (let counted = 0; counted < 3;) {
      const page = await registry.workerMetrics({ timeout: 20, selfMetrics: true });
      assert.equal(valueOf(page, 'jobs_total{kind="a"}'), 2);
      counted = valueOf(page, count) ?? 0;
    }
    await thread.do('endHook');
    // Each scrape runs it again.
    while (valueOf(await registry.workerMetrics({ timeout: 20 }), 'held') !== 1);
  });

  it('WorkerRegistry follows label sets that are removed, metrics that are reset or dropped, and default labels', async () => {
    const thread = await start(['inc', { kind: 'a', value: 2 }], ['inc', { kind: 'b', value: 3 }]);
    await thread.do('remove', { kind: 'a' });
    let page = await registry.workerMetrics();
    assert.equal(valueOf(page, 'jobs_total{kind="a"}'), undefined);
    assert.equal(valueOf(page, 'jobs_total{kind="b"}'), 3);
    await thread.doAll(['inc', { kind: 'a', value: 4 }], ['defaultLabels', { labels: { app: 'x' } }]);
    page = await registry.workerMetrics();
    assert.equal(valueOf(page, 'jobs_total{kind="a",app="x"}'), 4);
    await thread.doAll('reset', ['inc', { kind: 'c', value: 1 }]);
    page = await registry.workerMetrics();
    assert.deepEqual(page.match(/^jobs_total\{.*$/gm), ['jobs_total{kind="c",app="x"} 1']);
    await thread.do('drop');
    page = await registry.workerMetrics();
    assert.doesNotMatch(page, /^jobs_total/m);
  });

  it('WorkerRegistry finds threads that joined before it was created', async () => {
    await registry.shutdown();
    const thread = await start(['inc', { kind: 'a', value: 2 }]);
    registry = new WorkerRegistry({ timeout: 60_000 });
    await thread.do('inc', { kind: 'a', value: 3 });
    while (registry.workerCount() === 0) await turn();
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 5);
    await thread.doAll('leave', 'join', ['inc', { kind: 'a', value: 4 }]);
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 9);
  });

  it('WorkerRegistry keeps the counts of a thread that leaves, once if it joins again', async () => {
    const thread = await start(['inc', { kind: 'a', value: 2 }]);
    await thread.doAll('leave', ['inc', { kind: 'a', value: 100 }]);
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 102);
    assert.equal(registry.workerCount(), 0);
    await thread.doAll('join', ['inc', { kind: 'a', value: 1000 }]);
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 1102);
    assert.equal(registry.workerCount(), 1);
    await thread.doAll('leave', ['inc', { kind: 'a', value: 10_000 }]);
    await thread.terminate();
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 11_102);
  });

  it('WorkerRegistry never shows a histogram that contradicts itself, and nothing that falls', async () => {
    const thread = await start();
    const shared = new SharedArrayBuffer(4);
    assert.equal(await thread.do('observeOnes', { shared }), 'observes');
    /** @type {number[]} */
    let last = [];
    for (let scrape = 0; scrape < 8; scrape++) {
      const page = await registry.workerMetrics();
      const numbers = [...page.matchAll(/^seconds_(?:bucket|sum|count)\{.*kind="ones"\} (\d+)$/gm)].map(
        numberOf,
      );
      if (numbers.length === 0) continue;
      const [one, two, four, all, sum, count] = numbers;
      assert.ok(one <= two && two <= four && four <= all, String(numbers));
      assert.equal(count, all);
      numbers.forEach((number, i) => assert.ok(!(number < last[i]), `${number} after ${last[i]}`));
      assert.ok(sum >= count, String(numbers));
      last = numbers;
      const median = /** @type {number} */ (valueOf(page, 'sizes{quantile="0.5"}'));
      // The values 0 to 999 follow each other, so the last ones may be missing.
      if (count > 10_000) assert.ok(median > 400 && median < 600, String(median));
    }
    Atomics.store(new Int32Array(shared), 0, 1);
    assert.ok(last.length === 6);
  });

  it('WorkerRegistry has each aggregator, one of the application too; of an ended thread only sums stay', async t => {
    Object.assign(client.aggregators, { product: productOf });
    t.after(() => delete (/** @type {any} */ (client.aggregators).product));
    // Of this thread, of the first one, and of the second one.
    const values = [1, 10, 100];
    const rules = Object.keys(RESULTS);
    record(client, rules, values[0]);
    await start(['aggregated', { rules, value: values[1] }]);
    const ended = await start(['aggregated', { rules, value: values[2] }]);
    const shown = (/** @type {string} */ page, /** @type {string} */ sample) =>
      Object.fromEntries(rules.map(rule => [rule, valueOf(page, sample.replace('*', rule))]));
    const of = (/** @type {number[]} */ recorded) =>
      Object.fromEntries(rules.map(rule => [rule, RESULTS[rule](recorded)]));
    let page = await registry.workerMetrics();
    assert.equal(valueOf(page, 'summary_sum{quantile="0.5"}'), 10);
    for (const sample of ['counter_*', 'gauge_*', 'histogram_*_sum', 'summary_*_sum'])
      assert.deepEqual(shown(page, sample), of(values), sample);
    assert.deepEqual(shown(page, 'histogram_*_bucket{le="50"}'), of([1, 1, 0]));
    assert.deepEqual(shown(page, 'summary_*_count'), of([1, 1, 1]));
    await ended.terminate();
    page = await registry.workerMetrics();
    assert.deepEqual(shown(page, 'gauge_*'), of([1, 10]));
    for (const sample of ['counter_*', 'histogram_*_sum', 'summary_*_sum'])
      assert.deepEqual(shown(page, sample), { ...of([1, 10]), sum: 111 }, sample);
    assert.equal(valueOf(page, 'histogram_sum_count'), 3);
    assert.equal(valueOf(page, 'summary_sum{quantile="0.5"}'), 10);
  });

  it('WorkerRegistry shows default metrics of the process once, those of each thread, and metrics named alike', async () => {
    const config = { runtime: true, prefix: 'svc_' };
    client.collectDefaultMetrics({ ...config, labels: { thread: 'main' } });
    await start(
      ['defaults', { config: { ...config, labels: { thread: 'other' } } }],
      ['useHeap', { numbers: 2 ** 22 }],
    );
    collectGarbage();
    const collections = (/** @type {string} */ thread) =>
      `svc_nodejs_gc_duration_seconds_count{kind="major",thread="${thread}"}`;
    const page = await pageWhere(each =>
      ['main', 'other'].every(thread => valueOf(each, collections(thread))),
    );
    for (const name of ['child_process_open_fds', 'my_process_resident_memory_bytes'])
      assert.equal(valueOf(page, name), 5);
    const families = page.split('# HELP ').slice(1);
    for (const family of families) {
      const [name] = family.split(' ', 1);
      const threads = [...new Set(family.match(/(?<=thread=")\w+/g))].sort();
      // A system may have no limit of memory; a thread may have nothing open at this moment.
      if (/^svc_process_cgroup|^svc_nodejs_active_\w+s$/.test(name))
        assert.ok(!threads.includes('other') || name.startsWith('svc_nodejs_'), family);
      else if (name.startsWith('svc_process_')) assert.deepEqual(threads, ['main'], family);
      else if (name.startsWith('svc_')) assert.deepEqual(threads, ['main', 'other'], family);
    }
    assert.ok(families.length > 30, page);
    const used = (/** @type {string} */ thread) =>
      valueOf(page, `svc_nodejs_heap_size_used_bytes{thread="${thread}"}`) ?? 0;
    assert.ok(used('other') > 8 * 2 ** 22 && used('other') > used('main'), page);
  });

  it('WorkerRegistry is a registry for endpoints, as bytes, in OpenMetrics and for some names', async () => {
    await start(['inc', { kind: 'a', value: 2 }], ['plain', { value: 1 }]);
    const page = await registry.workerMetricsBytes({
      contentType: Registry.OPENMETRICS_CONTENT_TYPE,
      names: ['jobs_total'],
    });
    assert.equal(page.toString(), '# HELP jobs h\n# TYPE jobs counter\njobs_total{kind="a"} 2\n# EOF\n');
    const response = await client.metricsResponse(registry, new Request('http://localhost/metrics'));
    assert.equal(response.status, 200);
    assert.match(await response.text(), /^plain_total 1$/m);
    registry.setFormats(['text', 'openmetrics']);
    await threads[0].do('exemplar');
    const accept = { headers: { accept: 'application/openmetrics-text' } };
    const other = await client.metricsResponse(registry, new Request('http://localhost', accept));
    assert.match(await other.text(), /^traced_total 2 # \{trace="abc"\} 2 .*# EOF\n$/ms);
  });

  it('WorkerRegistry serves native histograms to those that ask for protobuf, and writes it if it is told to', async () => {
    const contentType = Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE;
    const factor = { nativeHistogramBucketFactor: 2 };
    const headers = { accept: `${contentType}, text/plain;q=0.5` };
    const scrape = () => client.metricsResponse(registry, new Request('http://localhost', { headers }));
    await start(['inc', { kind: 'a', value: 2 }]);
    assert.equal((await scrape()).headers.get('content-type'), Registry.PROMETHEUS_CONTENT_TYPE);
    new client.Histogram({ name: 'sizes', help: 'h', buckets: [], ...factor }).observe(3);
    const response = await scrape();
    assert.equal(response.headers.get('content-type'), contentType);
    const families = familiesOf(Buffer.from(await response.arrayBuffer()));
    const { count, positiveSpan } = families.find(({ name }) => name === 'sizes').metric[0].histogram;
    assert.deepEqual([count, positiveSpan], [1, [{ offset: 2, length: 1 }]]);
    registry.setContentType(contentType);
    const names = families.map(({ name }) => name).filter(name => !name.startsWith('prom_client_'));
    const shown = familiesOf(await registry.workerMetrics()).map(({ name }) => name);
    assert.deepEqual(shown, names);
  });

  it('WorkerRegistry takes threads of another copy of the package, and threads with two copies, but not those of another version', async t => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'copy-of-the-package-'));
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
    for (const name of ['index.js', 'package.json', 'lib'])
      fs.cpSync(path.join(ROOT, name), path.join(directory, name), { recursive: true });
    fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(directory, 'node_modules'), 'junction');
    const copy = path.join(directory, 'index.js');
    const [ofCopy, ofBoth] = [new TestThread({ client: copy }), new TestThread()];
    threads.push(ofCopy, ofBoth);
    await ofCopy.doAll('create', 'join', ['inc', { kind: 'a', value: 2 }]);
    await ofBoth.doAll(
      'create',
      'join',
      ['inc', { kind: 'a', value: 20 }],
      ['otherCopy', { copy, value: 200 }],
    );
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 222);
    await ofBoth.do('rejoinOfCopies', { copy });
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 222);
    // Now it answers nobody.
    await ofBoth.do('sleep');
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 222);
    // A copy with another version of the messages: neither side takes the other's for its own.
    const messages = path.join(directory, 'lib/threads/thread-messages.js');
    const code = fs.readFileSync(messages, 'utf8');
    assert.match(code, /threads\.v1'/);
    fs.writeFileSync(messages, code.replace("threads.v1'", "threads.v2'"));
    const ofVersion = new TestThread({ client: copy });
    threads.push(ofVersion);
    await ofVersion.doAll('create', 'hook', 'join', ['inc', { kind: 'a', value: 2000 }]);
    const page = await registry.workerMetrics({ selfMetrics: true });
    assert.equal(valueOf(page, 'jobs_total{kind="a"}'), 222);
    assert.equal(valueOf(page, 'hooked'), undefined);
    assert.equal(registry.workerCount(), 2);
    await ofVersion.doAll(['inc', { kind: 'b', value: 1 }], 'leave');
    assert.equal(ofVersion.error, undefined);
  });

  it('WorkerRegistry counts the label sets beyond the limit of a metric, also those of ended threads', async () => {
    const count = 'prom_client_cluster_failures_total{stage="max-series",metric="limited_total"}';
    const ended = await start('limited', ['incLimited', { kind: 'd' }]);
    const thread = new TestThread();
    threads.push(thread);
    await thread.doAll(
      'create',
      'limited',
      'join',
      ['incLimited', { kind: 'd' }],
      ['incLimited', { kind: 'a' }],
    );
    assert.equal(valueOf(await registry.workerMetrics({ selfMetrics: true }), count), 4);
    await ended.terminate();
    await thread.do('incLimited', { kind: 'e' });
    const page = await registry.workerMetrics({ selfMetrics: true });
    assert.equal(valueOf(page, count), 5);
    assert.equal(valueOf(page, 'limited_total{kind="overflow"}'), 5);
    const states = page.match(/(?<=^prom_client_cluster_workers\{state=)"(fresh|retired)"\} \d/gm);
    assert.deepEqual(states, ['"fresh"} 1', '"retired"} 1']);
  });

  it('WorkerRegistry shows the metrics of its own thread once, even if one joins in it', async () => {
    new Counter({ name: 'jobs_total', help: 'h' }).inc(2);
    const other = new WorkerRegistry(undefined, false);
    await start(['plain', { value: 1 }]);
    for (const page of [await registry.workerMetrics(), await other.workerMetrics()])
      assert.equal(valueOf(page, 'jobs_total'), 2);
    assert.equal(registry.workerCount(), 1);
    await other.shutdown();
  });

  it('WorkerRegistry and a cluster that includes its primary both show threads, also those that have ended', async t => {
    const ended = await start(
      ['inc', { kind: 'a', value: 2 }],
      ['summarize', { value: 7 }],
      ['set', { value: 1 }],
    );
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total{kind="a"}'), 2);
    const cluster = new AggregatorRegistry({ includePrimary: true, inPlace: true, timeout: 60_000 });
    t.after(() => cluster.close());
    const shown = (/** @type {string} */ page) => page.match(/^(jobs|sizes|queue).*$/gm);
    const pages = () => Promise.all([registry.workerMetrics(), cluster.clusterMetrics()]);
    assert.deepEqual(...(await pages()).map(shown));
    await start(['inc', { kind: 'a', value: 20 }], 'hook', 'custom');
    await ended.terminate();
    const isHooked = (/** @type {string} */ page) =>
      ['hooked', 'custom_size'].every(name => valueOf(page, name) === 7);
    // A thread that does not begin in time is shown with the values before. Pages of both run its hooks.
    while (!isHooked(await cluster.clusterMetrics())) assert.equal(registry.workerCount(), 1);
    for (;;) {
      const [own, ofCluster] = await pages();
      assert.equal(valueOf(own, 'jobs_total{kind="a"}'), 22);
      assert.equal(valueOf(own, 'sizes{quantile="0.5"}'), 7);
      assert.deepEqual(shown(ofCluster), shown(own));
      if ([own, ofCluster].every(isHooked)) break;
    }
  });

  it('WorkerRegistry shows nothing where there are no metrics', async () => {
    assert.equal(await registry.workerMetrics(), '');
    const request = new Request('http://localhost/metrics');
    const response = await client.metricsResponse(registry, request, { selfMetrics: false, onError() {} });
    assert.equal(response.status, 503);
    assert.equal((await client.metricsResponse(registry, request)).status, 200);
  });

  it('WorkerRegistry rejects a scrape that has no numbers in time, and shows no empty page', async () => {
    const collect = () => new Promise(() => {});
    new client.Gauge({ name: 'pending', help: 'h', collect: /** @type {any} */ (collect) });
    const error = { message: /Operation timed out/, code: 'PROM_CLIENT_TIMEOUT' };
    await assert.rejects(registry.workerMetrics({ timeout: 1 }), error);
  });

  it('WorkerRegistry aggregates in the thread of its option', async t => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'thread-of-threads-'));
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
    const main = path.join(ROOT, 'lib/aggregator/aggregator-thread.js');
    const own = path.join(directory, 'own-thread.js');
    const hasStarted = path.join(directory, 'has-started');
    const start = `require('node:fs').writeFileSync(${JSON.stringify(hasStarted)}, '');`;
    fs.writeFileSync(own, `${start} require(${JSON.stringify(main)});`);
    await registry.shutdown();
    registry = new WorkerRegistry({ timeout: 60_000, thread: pathToFileURL(own) });
    new Counter({ name: 'jobs_total', help: 'h' }).inc(2);
    assert.equal(valueOf(await registry.workerMetrics(), 'jobs_total'), 2);
    assert.ok(fs.existsSync(hasStarted));
  });

  it('WorkerRegistry writes no file, creates no directory, and is aggregated once, also beside an AggregatorRegistry', async t => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'nothing-of-threads-'));
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
    const thread = JSON.stringify(path.join(__dirname, 'fixtures/thread.js'));
    const program = `
      const { once } = require('node:events');
      const fs = require('node:fs');
      const { Worker } = require('node:worker_threads');
      const { AggregatorRegistry, WorkerRegistry } = require(${JSON.stringify(ROOT)});
      let threads = 0;
      process.on('worker', () => threads++);
      const seen = new Set();
      const look = () => fs.readdirSync(process.env.TMPDIR).forEach(name => seen.add(name));
      async function main() {
        const registry = new WorkerRegistry();
        const cluster = new AggregatorRegistry();
        for (let i = 0; i < 2; i++) {
          const worker = new Worker(${thread});
          for (const message of [{ action: 'create' }, { action: 'join' }, { action: 'plain', value: 2 }]) {
            worker.postMessage(message);
            await once(worker, 'message');
          }
          look();
          if (i === 1) await worker.terminate();
          look();
        }
        const page = await registry.workerMetrics({ selfMetrics: true });
        await cluster.clusterMetrics();
        look();
        const samples = page.match(/^(plain_total|prom_client_cluster_snapshots_over_ipc_total.* [1-9]).*$/gm);
        process.stdout.write(JSON.stringify({ samples, threads, seen: [...seen] }));
        process.exit();
      }
      main();`;
    const environment = { ...process.env, TMPDIR: directory, TMP: directory, TEMP: directory };
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { env: environment });
    assert.deepEqual(JSON.parse(stdout), { samples: ['plain_total 4'], threads: 3, seen: [] });
  });

  describe('if the aggregator is lost', () => {
    /** @type {any[]} threads that were started */
    let started;
    const onWorker = (/** @type {any} */ thread) => started.push(thread);

    beforeEach(() => {
      started = [];
      process.on('worker', onWorker);
    });

    afterEach(() => void process.off('worker', onWorker));

    async function loseAggregator() {
      const own = new Set(threads.map(({ worker }) => worker));
      await started
        .filter(thread => !own.has(thread))
        .at(-1)
        .terminate();
    }

    it('WorkerRegistry goes on with a thread that computes for ever, if the aggregator is lost', async () => {
      const thread = await start(['observe', { kind: 'x', value: 3 }], ['summarize', { value: 7 }], 'hook');
      await pageWith('hooked', 7);
      const shared = new SharedArrayBuffer(16);
      assert.equal(await thread.do('spin', { shared }), 'spins');
      const counted = new Float64Array(shared, 8, 1);
      for (let loss = 0; loss < 2; loss++) {
        await loseAggregator();
        const before = counted[0];
        const page = await registry.workerMetrics();
        const shown = valueOf(page, 'jobs_total{kind="spin"}') ?? 0;
        assert.ok(shown >= before && shown <= counted[0] + 1, `${before}, ${shown}, ${counted[0]}`);
        for (const [sample, value] of /** @type {[string, number][]} */ ([
          ['seconds_sum{kind="x"}', 3],
          ['sizes{quantile="0.5"}', 7],
          ['hooked', 7],
        ]))
          assert.equal(valueOf(page, sample), value);
      }
      Atomics.store(new Int32Array(shared), 0, 1);
    });

    for (const [when, lose] of /** @type {[string, (thread: TestThread) => Promise<unknown>][]} */ ([
      ['after a thread has ended', thread => thread.terminate().then(loseAggregator)],
      ['when a thread ends', thread => Promise.all([loseAggregator(), thread.terminate()])],
      ['before a thread ends', thread => loseAggregator().then(() => thread.terminate())],
      [
        'after a page without the thread',
        async thread => {
          await thread.terminate();
          await registry.workerMetrics();
          await loseAggregator();
        },
      ],
    ]))
      it(`WorkerRegistry keeps the counts of an ended thread, if the aggregator is lost ${when}`, async () => {
        const ended = await start(
          ['inc', { kind: 'a', value: 0.1 }],
          ['summarize', { value: 7 }],
          ['set', { value: 1 }],
        );
        await start(['inc', { kind: 'a', value: 0.2 }]);
        const before = await registry.workerMetrics();
        await lose(ended);
        const shown = (/** @type {string} */ page) => page.match(/^(jobs|sizes).*$/gm);
        for (let scrape = 0; scrape < 2; scrape++) {
          const after = await registry.workerMetrics();
          assert.deepEqual(shown(after), shown(before));
          assert.doesNotMatch(after, /^queue_size\{/m);
          await loseAggregator();
        }
      });
  });

  it('WorkerRegistry aggregates in place, has both formats, and drops totals of ended threads in time, by its options or those of the environment', async t => {
    await registry.shutdown();
    const variables = {
      PROM_CLIENT_CLUSTER_FORMATS: 'text,openmetrics',
      PROM_CLIENT_CLUSTER_TIMEOUT: '60000',
    };
    Object.assign(process.env, variables);
    t.after(() => Object.keys(variables).forEach(name => delete process.env[name]));
    /** @type {unknown[]} */
    const started = [];
    const onThread = (/** @type {any} */ { worker }) => started.push(worker);
    diagnosticsChannel.subscribe('worker_threads', onThread);
    t.after(() => diagnosticsChannel.unsubscribe('worker_threads', onThread));
    registry = new WorkerRegistry({ inPlace: true, retiredMaxAge: 0 });
    assert.equal(registry.timeout, 60_000);
    const thread = await start(['inc', { kind: 'a', value: 2 }]);
    const accept = { headers: { accept: 'application/openmetrics-text' } };
    const response = await client.metricsResponse(registry, new Request('http://localhost', accept));
    assert.match(await response.text(), /^jobs_total\{kind="a"\} 2\n(.*\n)*# EOF\n$/m);
    await thread.terminate();
    await pageWhere(page => valueOf(page, 'jobs_total{kind="a"}') === undefined);
    assert.deepEqual(started, [thread.worker]);
  });

  it('WorkerRegistry takes its options as any argument, and says whether it serves the page', async () => {
    const { OPENMETRICS_CONTENT_TYPE } = Registry;
    const options = { timeout: 7 };
    for (const args of /** @type {any[][]} */ ([
      [options],
      [undefined, options],
      [OPENMETRICS_CONTENT_TYPE, options],
      [OPENMETRICS_CONTENT_TYPE, true, options],
      [options, true],
      [undefined, undefined, options],
    ])) {
      const other = new WorkerRegistry(...args);
      assert.equal(other.timeout, 7);
      assert.equal(
        other.contentType,
        args[0] === options
          ? Registry.PROMETHEUS_CONTENT_TYPE
          : (args[0] ?? Registry.PROMETHEUS_CONTENT_TYPE),
      );
      await other.shutdown();
    }
    await new WorkerRegistry(undefined, true, /** @type {any} */ (null)).shutdown();
    await registry.shutdown();
    // This one does not serve, whatever its options are.
    registry = new WorkerRegistry(/** @type {any} */ (options), false);
    assert.deepEqual(await registry.workerMetricsBytes({ selfMetrics: true }), Buffer.alloc(0));
    assert.throws(() => new WorkerRegistry(/** @type {any} */ (register)), /Content type .* is unsupported/);
  });

  it('WorkerRegistry reports options that it does not have, or that differ from the first ones; close() releases as shutdown() does', async t => {
    const warnings = t.mock.method(process, 'emitWarning', () => {});
    const given = [
      { inPlace: true },
      { retiredMaxAge: 5 },
      { retiredMaxAgeMs: 5 },
      { directory: '/tmp', group: 'x' },
    ];
    const others = given.map(options => new WorkerRegistry(undefined, true, options));
    const shown = warnings.mock.calls.map(({ arguments: [text] }) => text.replace(/^\S+: /, ''));
    assert.deepEqual(shown, [
      "the option 'inPlace' differs from that of the first WorkerRegistry, which applies to all",
      'WorkerRegistry has no option `retiredMaxAgeMs`: did you mean `retiredMaxAge`?',
      'WorkerRegistry has no option `directory`',
      'WorkerRegistry has no option `group`',
    ]);
    await Promise.all([...others, registry].map(each => each.close()));
    await registry.close();
    assert.equal(await registry.workerMetrics({ selfMetrics: true }), '');
    const request = new Request('http://localhost/metrics');
    const response = await metricsResponse(registry, request, { onError() {} });
    assert.equal(await response.text(), 'The WorkerRegistry was closed.\n');
  });

  it('WorkerRegistry checks its options, and has the static methods of AggregatorRegistry', () => {
    assert.throws(() => new WorkerRegistry('text/html'), TypeError);
    assert.throws(() => new WorkerRegistry({ timeout: /** @type {any} */ ('x') }), TypeError);
    assert.throws(() => new WorkerRegistry(undefined, true, { timeout: 'x' }), TypeError);
    assert.throws(() => new WorkerRegistry(undefined, true, { formats: ['json'] }), TypeError);
    assert.throws(() => WorkerRegistry.setRegistries(/** @type {any} */ ({})), TypeError);
    assert.ok(WorkerRegistry.aggregate([]) instanceof Registry);
    assert.ok(AggregatorRegistry !== /** @type {any} */ (WorkerRegistry));
  });
});

/** @param {any[]} metrics */
function productOf([first, ...others]) {
  const values = first.values.map((/** @type {any} */ sample, /** @type {number} */ i) => {
    const value = others.reduce((product, { values }) => product * values[i].value, sample.value);
    return { ...sample, value };
  });
  return { ...first, values };
}

/** @param {RegExpMatchArray} match */
function numberOf([, text]) {
  return Number(text);
}
