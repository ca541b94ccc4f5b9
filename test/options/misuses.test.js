'use strict';

// Every misuse that users are known to make has a text that says what to do. Where prom-client throws a text
// of its own, ours begins with it; test/prom-client/accepted-calls.test.js has those that are prom-client's.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const http = require('node:http');
const path = require('node:path');
const { fastify } = require('fastify');
const promClient = require('prom-client');
const fastifyMetrics = require('prom-client-cluster/fastify');
const { samples } = require('prom-client-cluster/testing');

const ROOT = path.join(__dirname, '../..');

/** A copy of the library that has not warned yet. */
function freshCopy() {
  for (const file of Object.keys(require.cache)) {
    if (file === path.join(ROOT, 'index.js') || file.startsWith(path.join(ROOT, 'lib') + path.sep))
      delete require.cache[file];
  }
  return require(ROOT);
}

/**
 * What a misuse has to work with: a library and a registry of its own.
 *
 * @param {any} client
 * @param {(() => unknown)[]} cleanUps
 */
function worldOf(client, cleanUps) {
  const registry = new client.Registry();
  const make = (type, config) => new client[type]({ name: 'a', help: 'h', registers: [registry], ...config });
  return {
    ...{ client, registry, cleanUps },
    counter: config => make('Counter', config),
    gauge: config => make('Gauge', config),
    histogram: config => make('Histogram', config),
    summary: config => make('Summary', config),
    page: () => registry.metrics(),
    aggregator: (...args) => {
      const made = new client.AggregatorRegistry(...args);
      if (made.close !== undefined) cleanUps.push(() => made.close());
      return made;
    },
    threads: options => {
      client.AggregatorRegistry.setRegistries([]);
      cleanUps.push(() => client.AggregatorRegistry.setRegistries(client.register));
      const made = new client.WorkerRegistry({ inPlace: true, ...options });
      cleanUps.push(() => made.shutdown());
      return made;
    },
  };
}

/** Of errors that nobody wrote. */
const ENGINE = /^Cannot |is not (a function|iterable|a constructor|defined)$|Invalid array length$/;

/** For misuses that warn of nothing, which therefore leave nothing behind. */
const common = require(ROOT);

const labelled = { labelNames: ['x'] };

/** Makes a request of a handler. */
function responseOf(handler) {
  const response = new http.ServerResponse(new http.IncomingMessage());
  return handler({ method: 'GET', headers: {} }, response).then(() => response);
}

// [misuse, what is done, what it gets: `throws`, `warns` or `page`, also several]
// prettier-ignore
const METRICS = [
  ['label_names instead of labelNames',
    $ => $.counter({ label_names: ['x'] }).inc({ x: 1 }),
    { warns: /^Metric a has no option `label_names`: did you mean `labelNames`\?$/, throws: /Added label "x" is not included/ }],
  ['labels instead of labelNames',
    $ => $.counter({ labels: ['x'] }), { warns: /`labels`: did you mean `labelNames`\?/ }],
  ['unknown option bucket',
    $ => $.histogram({ bucket: [1] }), { warns: /`bucket`: did you mean `buckets`\?/ }],
  ['NaN among the buckets', $ => $.histogram({ buckets: [NaN, 1] }), {
    page: /a_bucket{le="1"} 0\na_bucket{le="\+Inf"} 0\n/, warns: /^Metric a: buckets that are not numbers are left out: \[ NaN, 1 \], first at make \(.*misuses\.test\.js:\d+:\d+\)$/ }],
  ['buckets: a number', $ => $.histogram({ buckets: 5 }), { throws: /^TypeError: buckets must be an array: 5$/ }],
  ['a misspelt label',
    $ => $.counter({ labelNames: ['method'] }).inc({ metod: 'GET' }),
    { throws: /^Error: Added label "metod" is not included in initial labelset: \[ 'method' \]$/ }],
  ['arguments by position', $ => new $.client.Counter('a', 'h', ['x']), { throws: /^TypeError: constructor expected a config object$/ }],
  ['an invalid name',
    $ => $.counter({ name: 'a-b' }), { throws: /^Error: Invalid metric name: 'a-b'\. Use letters, digits, _ and :, and no digit first$/ }],
  ['an invalid label name',
    $ => $.counter({ labelNames: ['ok', 'b-c'] }), { throws: /^Error: Invalid label name: 'b-c'\. Use letters, digits and _, and no digit first$/ }],
  ['a reserved label name',
    $ => $.counter({ labelNames: ['__x'] }), { warns: /^Metric a: Prometheus reserves labels that begin with __, such as __x$/ }],
  ['labelNames: a string', $ => $.counter({ labelNames: 'x' }), { throws: /^TypeError: labelNames must be an array: 'x'$/ }],
  ['a name registered twice',
    $ => [$.counter(), $.counter()],
    { throws: /^Error: A metric with the name a has already been registered\. To use the one that exists, call registry\.getOrCreate\(\)$/ }],
  ['inc(NaN), for ever',
    $ => {
      const counter = $.counter();
      for (let i = 0; i < 100; i++) counter.inc(NaN);
    },
    { page: /^a 0$/m, warns: /^Metric a: inc\(\) adds nothing: NaN, first at .*misuses\.test\.js:\d+:\d+\)$/ }],
  ["dec('x')", $ => $.gauge().dec('x'), { page: /^a 0$/m, warns: /^Metric a: dec\(\) subtracts nothing: 'x', first at / }],
  ['zero() of an unknown label',
    $ => $.histogram(labelled).zero({ y: 1 }),
    { page: /^# TYPE a histogram\n$/m, warns: /^Metric a: zero\(\) does nothing for labels that are not in labelNames: { y: 1 }, first at / }],
  ['hashMap = { … }',
    $ => void ($.counter().hashMap = { x: 1 }), { warns: /^Metric a: hashMap can only be emptied: { x: 1 }, first at / }],
  ['an age that is below 0',
    $ => $.summary({ maxAgeSeconds: -1, ageBuckets: 2 }),
    { warns: /^Metric a: a sliding window needs seconds above 0 and 1 to 100000 ageBuckets: { maxAgeSeconds: -1, ageBuckets: 2 }, first at / }],
  ['a million ageBuckets',
    $ => $.summary({ labelNames: ['x'], maxAgeSeconds: 60, ageBuckets: 1e6 }), { warns: /1 to 100000 ageBuckets: { maxAgeSeconds: 60, ageBuckets: 1000000 }/ }],
  ['inc(2, labels)',
    $ => $.counter(labelled).inc(2, { x: 1 }),
    { page: /^a 2$/m, warns: /^Metric a: inc\(\) takes labels first, then the value\. The labels of this call are ignored$/ }],
  ['set(2, labels)', $ => $.gauge(labelled).set(2, { x: 1 }), { page: /^a 2$/m, warns: /set\(\) takes labels first/ }],
  ['dec(2, labels)', $ => $.gauge(labelled).dec(2, { x: 1 }), { page: /^a -2$/m, warns: /dec\(\) takes labels first/ }],
  ['observe(2, labels)', $ => $.histogram(labelled).observe(2, { x: 1 }), { page: /^a_sum 2$/m, warns: /observe\(\) takes labels first/ }],
  ['percentiles: [99]',
    $ => $.summary({ percentiles: [50, 99] }), {
    page: /^a{quantile="99"} 0$/m, warns: /^Metric a: percentiles should be between 0 and 1 \(0\.99 and not 99\): \[ 50, 99 \], first at / }],
  ['maxAgeSeconds without ageBuckets',
    $ => $.summary({ maxAgeSeconds: 60 }), { warns: /^Metric a: a sliding window needs both maxAgeSeconds and ageBuckets$/ }],
  ['ageBuckets: -1',
    $ => $.summary({ maxAgeSeconds: 60, ageBuckets: -1 }), { throws: /^RangeError: Invalid array length: ageBuckets must be a whole number up to 100000: -1$/ }],
  ['an aggregator that does not exist',
    async $ => {
      $.gauge({ name: 'averaged', aggregator: 'avg' });
      const aggregator = $.aggregator({ includePrimary: true, inPlace: true, timeout: 60_000 });
      $.client.AggregatorRegistry.setRegistries($.registry);
      $.cleanUps.push(() => $.client.AggregatorRegistry.setRegistries($.client.register));
      await aggregator.clusterMetrics();
    },
    { warns: /^The metric 'averaged' is missing in the cluster's metrics: the primary's `aggregators` lack its aggregator/ }],
  ['registers: a registry', $ => $.counter({ registers: $.registry }), { throws: /^TypeError: registers must be an array: Registry/ }],
  ['register instead of registers',
    $ => $.counter({ registers: [], register: $.registry }), { warns: /`register`: did you mean `registers`\?/ }],
  ["maxSeries: '10'", $ => $.counter({ maxSeries: '10' }), { ours: true, throws: /^TypeError: maxSeries must be a positive integer: '10'$/ }],
  ['linearBuckets() without a count',
    $ => $.client.linearBuckets(1, 2), {
    warns: /^linearBuckets\(\): one bucket, because its third argument is not their count: undefined, first at / }],
];

// prettier-ignore
const REGISTRIES = [
  ['metricsBytes(null)', $ => $.registry.metricsBytes(null), { ours: true }],
  ['register.metrics() without await',
    $ => new http.ServerResponse(new http.IncomingMessage()).end($.registry.metrics()),
    { throws: /^TypeError.*: The "chunk" argument must be of type string .* Received an instance of Promise$/ }],
  ['getOrCreate() without a class',
    $ => $.registry.getOrCreate({ name: 'a', help: 'h' }),
    { ours: true, throws: /^TypeError: getOrCreate\(\) expected a class of metrics and options$/ }],
  ['setDefaultLabels() with an invalid name',
    $ => $.registry.setDefaultLabels({ 'bad-name': 1 }), {
    warns: /^setDefaultLabels\(\): labels are left out whose name is not valid: { 'bad-name': 1 }, first at / }],
  ["setDefaultLabels('x')",
    $ => $.histogram().observe(1) ?? $.registry.setDefaultLabels('x'),
    { page: /^a_count 1$/m, warns: /^setDefaultLabels\(\): labels are left out whose name is not valid: 'x', first at / }],
  ['registerMetric() with something else',
    $ => $.registry.registerMetric({}), {
    page: /^\n$/, warns: /^registerMetric\(\): left out, because it has no get\(\): {}, first at / }],
  ['collectDefaultMetrics() twice',
    $ => {
      const collect = () => $.client.collectDefaultMetrics({ register: $.registry });
      $.cleanUps.push(collect() ?? (() => $.registry.clear()));
      collect();
    },
    { throws: /has already been registered\. Call collectDefaultMetrics\(\) once for each registry, or with another prefix$/ }],
  ['collectDefaultMetrics() with a misspelt option',
    $ => $.cleanUps.push($.client.collectDefaultMetrics({ registers: $.registry })),
    { warns: /^collectDefaultMetrics\(\) has no option `registers`: did you mean `register`\?$/ }],
];

// prettier-ignore
const CLUSTERS = [
  ['AggregatorRegistry.metrics() in a single process',
    async $ => assert.equal(await $.aggregator().metrics(), '\n'), {}],
  ['new AggregatorRegistry(options)',
    $ => assert.equal($.aggregator({ timeout: 250 }).timeout, 250), {}],
  ['new AggregatorRegistry(registry)',
    $ => $.aggregator($.registry), { throws: /^TypeError: Content type \[object Object\] is unsupported$/ }],
  ["timeout: '5s'",
    $ => $.aggregator(undefined, { timeout: '5s' }), { ours: true, throws: /^TypeError: timeout must be a number of milliseconds: '5s'$/ }],
  ['timout', $ => $.aggregator({ timout: 5 }), { warns: /^AggregatorRegistry has no option `timout`: did you mean `timeout`\?$/ }],
  ['clusterMetricsBytes({ timout })', $ => $.aggregator().clusterMetricsBytes({ timout: 5 }),
    { ours: true, warns: /^clusterMetricsBytes\(\) has no option `timout`: did you mean `timeout`\?$/ }],
  ['metricsBytes({ gzipp })', $ => $.registry.metricsBytes({ gzipp: true }),
    { ours: true, warns: /^metricsBytes\(\) has no option `gzipp`: did you mean `gzip`\?$/ }],
  ['clusterMetrics({ timout })', $ => $.aggregator().clusterMetrics({ timout: 5 }), { warns: /^clusterMetrics\(\) has no option `timout`: did you mean `timeout`\?$/ }],
  ['a directory that does not exist',
    $ => $.aggregator({ directory: '/does/not/exist' }),
    { warns: /^AggregatorRegistry: the directory '\/does\/not\/exist' does not exist: another is used$/ }],
];

// prettier-ignore
const ENDPOINTS = [
  ['metricsHandler(undefined)', $ => $.client.metricsHandler(undefined), { ours: true, throws: /^TypeError: metricsHandler expected a Registry/ }],
  ['metricsHandler() of a registry with a collect hook that throws',
    async $ => {
      $.gauge({ collect: () => { throw new Error('db down'); } });
      const response = await responseOf($.client.metricsHandler($.registry));
      assert.equal(response.statusCode, 500);
    },
    { warns: /^A scrape of the metrics failed: db down$/ }],
  ['metricsHandler() with a misspelt option',
    $ => $.client.metricsHandler($.registry, { format: ['text'] }),
    { warns: /^metricsHandler\(\) has no option `format`: did you mean `formats`\?$/ }],
  ['startMetricsServer() with a misspelt option',
    async $ => {
      const server = await $.client.startMetricsServer({ port: 0, registery: $.registry });
      $.cleanUps.push(() => server.close());
    },
    { warns: /^startMetricsServer\(\) has no option `registery`: did you mean `registry`\?$/ }],
  ['clusterMetricsBytes(null)', $ => $.aggregator().clusterMetricsBytes(null), { ours: true }],
  ['clusterMetricsBytes() with a symbol as content type',
    $ => $.aggregator().clusterMetricsBytes({ contentType: Symbol('x') }),
    { ours: true, throws: /^TypeError: Content type Symbol\(x\) is unsupported$/ }],
  ['a WorkerRegistry with null as options of its page',
    $ => $.threads().workerMetricsBytes(null), { ours: true }],
  ['a WorkerRegistry whose selfMetrics is a BigInt',
    $ => $.threads().workerMetrics({ selfMetrics: 1n }), { ours: true }],
  ['two WorkerRegistry objects, and an option without a text',
    $ => [$.threads(), $.threads({ inPlace: Object.create(null) })],
    { ours: true, warns: /^WorkerRegistry: the option 'inPlace' differs/ }],
  ['the plugin of fastify with a misspelt option',
    async $ => {
      const application = fastify().register(fastifyMetrics, { regsitry: $.registry, prefix: '/p', logLevel: 'warn' });
      $.cleanUps.push(() => application.close());
      await application.ready();
    },
    { ours: true, warns: /^prom-client-cluster\/fastify has no option `regsitry`: did you mean `registry`\?$/ }],
  ['the plugin of fastify that is called', () => fastifyMetrics(), { ours: true, throws: /pass it to fastify\.register\(\)$/ }],
  ['a collect hook that throws what cannot be read',
    async $ => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      $.gauge({ collect: () => { throw proxy; } });
      assert.equal((await responseOf($.client.metricsHandler($.registry))).statusCode, 500);
    },
    { ours: true, warns: /^A scrape of the metrics failed: / }],
  ['a metric object whose get() returns nothing',
    $ => ($.registry.registerMetric({ name: 'x', get: () => undefined }), $.page()),
    { ours: true, throws: /^TypeError: expected a metric with a list of values: undefined$/ }],
  ['samples() of a registry without text', () => samples({ metrics: () => undefined }), { ours: true, throws: /^TypeError: metrics\(\) returned no text: undefined$/ }],
  ['aggregate() without a list', $ => $.client.AggregatorRegistry.aggregate(), { ours: true, throws: /^TypeError: aggregate\(\) expected a list of lists of metrics$/ }],
  ['RemoteWrite to an object without a text', $ => new $.client.RemoteWrite(Object.create(null)), { ours: true, throws: /^TypeError: RemoteWrite expected the URL of a receiver/ }],
  ['new Pushgateway() with a misspelt option',
    $ => new $.client.Pushgateway('http://127.0.0.1:1', { timout: 5, path: '/', host: 'a', key: 'x', ca: 'x', port: 1 }),
    { warns: /^Pushgateway has no option `timout`: did you mean `timeout`\?$/ }],
  ['new Pushgateway() with a misspelt option of https.request()',
    $ => new $.client.Pushgateway('https://127.0.0.1:1', { rejectUnauthorised: false, minVersion: 'TLSv1.3' }),
    { warns: /^Pushgateway has no option `rejectUnauthorised`: did you mean `rejectUnauthorized`\?$/ }],
];

/** @returns {Promise<any>} the error of a misuse, if there is one */
async function errorOf(use, $) {
  try {
    await use($);
    return undefined;
  } catch (error) {
    return error;
  }
}

it('advice for developers is not given in production', async t => {
  const emit = t.mock.method(process, 'emitWarning', () => {});
  const { NODE_ENV } = process.env;
  process.env.NODE_ENV = 'production';
  t.after(() => {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  });
  const $ = worldOf(freshCopy(), []);
  $.summary({ label_names: ['x'], labelNames: ['__x'], maxAgeSeconds: 60 });
  $.gauge({ name: 'b' }).set(2, { x: 1 });
  assert.equal(emit.mock.callCount(), 0);
});

it('a misspelt option is named once, and options that are like no other never', t => {
  const emit = t.mock.method(process, 'emitWarning', () => {});
  const $ = worldOf(freshCopy(), []);
  for (const name of ['a', 'b']) $.counter({ name, register: $.registry });
  $.counter({ name: 'c', unit: 'x', type: 'counter', timestamp: 1, description: 'x', own: 1, tags: [] });
  const shown = emit.mock.calls.map(call => call.arguments);
  assert.deepEqual(shown, [
    ['Metric a has no option `register`: did you mean `registers`?', { code: 'PROM_CLIENT_CLUSTER_OPTIONS' }],
  ]);
});

for (const [subject, rows] of Object.entries({ METRICS, REGISTRIES, CLUSTERS, ENDPOINTS })) {
  describe(`misuse of ${subject.toLowerCase()}`, () => {
    for (const [misuse, use, { throws, warns, page, ours }] of rows) {
      it(misuse, async t => {
        const emit = t.mock.method(process, 'emitWarning', () => {});
        const cleanUps = [];
        t.after(() => Promise.all(cleanUps.map(cleanUp => cleanUp())));
        const $ = worldOf(warns === undefined ? common : freshCopy(), cleanUps);
        const error = await errorOf(use, $);
        const warnings = emit.mock.calls.map(({ arguments: [text] }) => text);
        assert.equal(warnings.length, warns === undefined ? 0 : 1, String(warnings));
        if (warns !== undefined) assert.match(warnings[0], warns);
        if (throws === undefined) assert.equal(error, undefined);
        else assert.match(String(error), throws);
        if (page !== undefined) assert.match(await $.page(), page);
        if (throws === undefined || ours) return;
        const theirs = await errorOf(use, worldOf(promClient, cleanUps));
        if (theirs === undefined || ENGINE.test(theirs.message)) return;
        assert.equal(error.name, theirs.name);
        assert.ok(error.message.startsWith(theirs.message), `prom-client: ${theirs.message}`);
      });
    }
  });
}
